/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Ring
 *
 * What is mapped of one perf event: its control page, its ring of records and its AUX area. The
 * kernel allocates all of it on the node of the event's CPU.
 */

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

struct source_view;

struct ring {
	struct perf_event_mmap_page *page; /* NULL: nothing is mapped */
	const uint8_t *data;
	size_t data_size; /* a power of two */
	const uint8_t *aux;
	size_t aux_size; /* a power of two; 0: none */
};

/*
 * Map the control page and @data_size bytes for records of the event @fd.
 *
 * @overwrite: the kernel overwrites old records when the ring is full, and the memory is read-only
 *
 * Return: 0; -ENOMEM if there is not so much memory; -EPERM if so much may not be locked; or
 * another
 *         negative errno.
 */
_must_check_ int ring_map(struct ring *ring, int fd, size_t data_size, bool overwrite);

/* Map an AUX area of @aux_size bytes, which is overwritten, beside what is mapped. Return: as
 * ring_map(). */
_must_check_ int ring_map_aux(struct ring *ring, int fd, size_t aux_size);

void ring_unmap(struct ring *ring);

/* Return: the running count of bytes of records. What was written before the call can be read after
 * it. The count goes down from 0 if the event writes backward. */
uint64_t ring_data_head(const struct ring *ring);

/* Return: the offset of the AUX area's writer when the event stopped last. */
uint64_t ring_aux_head(const struct ring *ring);

/* Say that all records before the running count @tail were read: the kernel may overwrite them. */
void ring_set_data_tail(struct ring *ring, uint64_t tail);

/* Return: the @n bytes from the running count @from on of the ring of @size bytes, a power of two,
 * at @bytes. */
struct source_view ring_span(const uint8_t *bytes, uint64_t size, uint64_t from, uint64_t n);

/* Return: how many bytes at the start of a view were written before the running count @since. */
size_t ring_before(const struct source_view *view, uint64_t since);

/* Copy @n bytes from the place @at of a view. */
void ring_copy(const struct source_view *view, size_t at, size_t n, uint8_t *to);
