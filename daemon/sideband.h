/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Sideband
 *
 * The task records since a moment from which they are complete, in memory that has a limit. They
 * are kept in chunks that only grow at their end, so that a snapshot in another thread can go on
 * reading a view while more records come in.
 *
 * There are two epochs, each of half the limit. When the present one is full, the older one goes, and
 * a new one begins with records made from what is known of those who live (daemon/tasks.h): so a
 * process that was started long ago keeps its name and its mappings. What ended before the older
 * epoch began is forgotten; a snapshot says since when its sideband is complete.
 */

#include <stdint.h>

#include "base/base.h"
#include "base/cursor.h"
#include "daemon/tasks.h"

struct sideband;
struct sideband_chunk;

/* All records at one moment, oldest first; each span holds whole records. */
struct sideband_view {
	struct cursor *spans;
	size_t n_spans;
	struct sideband_chunk **chunks; /* those the spans point into, referenced */
	uint64_t since_ns;          /* complete from then on; 0: since the recorder was started */
	struct tasks_range *ranges; /* anonymous executable memory of those who live */
	size_t n_ranges;
};

struct sideband_stats {
	uint64_t bytes; /* memory in use */
	uint64_t bytes_max;
	uint64_t
	    lost; /* records that there was no room for since the start, here or in the source */
};

/* @alive: see tasks_new(). */
_must_check_ int sideband_new(uint64_t bytes_max, tasks_alive_fn alive,
			      struct sideband **ret_sideband);
struct sideband *sideband_free(struct sideband *sideband);

DEFINE_CLEANUP(struct sideband *, sideband_free);

/* Change the limit. What is more than a lower one allows goes as the epochs end. */
void sideband_set_max(struct sideband *sideband, uint64_t bytes_max);

/*
 * Add whole, valid records (record_next() has seen them).
 *
 * Return: 0; -ENOSPC if records were refused, or tasks are too many; or -ENOMEM.
 */
_must_check_ int sideband_add(struct sideband *sideband, const uint8_t *bytes, size_t size);

/*
 * Take a view. It stays valid, whatever is added, until sideband_view_deinit(); both are called in
 * the sideband's own thread, reading the spans may happen in another.
 *
 * Return: 0, or -ENOMEM.
 */
_must_check_ int sideband_view_init(const struct sideband *sideband,
				    struct sideband_view *ret_view);
void sideband_view_deinit(struct sideband_view *view);

struct sideband_stats sideband_stats(const struct sideband *sideband);
