/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Memtrace writing
 *
 * Writes the bytes of plain drmemtrace files in another thread, while the owner of the threads goes
 * on: what the kernel does for them takes as long as making them. Bytes are written in the order in
 * which they were added, by one thread at a time, because a file has one lock. How many wait is
 * bounded, so that a slow disk stops the owner. After the first failure nothing more is written.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

struct ptd_threads;
struct memtrace_writing;

/* @threads is borrowed; the caller is their owner. Return: 0 or -ENOMEM. */
_must_check_ int memtrace_writing_new(struct ptd_threads *threads,
				      struct memtrace_writing **ret_writing);

/* All must have been written: memtrace_writing_drain(). */
struct memtrace_writing *memtrace_writing_free(struct memtrace_writing *writing);

/*
 * Return: a buffer of MEMTRACE_OUT_BUFFER bytes, which belongs to the caller until it is added or
 *         given back; NULL if there is no memory.
 */
uint8_t *memtrace_writing_buffer(struct memtrace_writing *writing);
void memtrace_writing_give_back(struct memtrace_writing *writing, uint8_t *buffer);

/*
 * Have the first @n bytes of @buffer written at @offset of the file open at @fd, which stays open
 * until then. The buffer is taken over.
 *
 * Return: 0; or negative errno, which is that of an earlier write.
 */
_must_check_ int memtrace_writing_add(struct memtrace_writing *writing, int fd, uint8_t *buffer,
				      size_t n, uint64_t offset);

/* Wait until all is written. Return: 0; or negative errno of the first write that failed. */
_must_check_ int memtrace_writing_drain(struct memtrace_writing *writing);
