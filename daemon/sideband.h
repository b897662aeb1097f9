/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Sideband
 *
 * The task records since a moment from which they are complete, in memory that has a limit. They
 * are kept in chunks that only grow at their end, so that a snapshot in another thread can go on
 * reading a view while more records come in.
 *
 * There are two epochs. A new one begins when nothing is being recorded, so that it needs no record
 * of the one before; the older one is kept because its PT may still be in the rings. When the limit
 * is reached all the same, the older epoch goes, and then new records are refused and counted: a
 * LOST record marks the place.
 */

#include <stdint.h>

#include "base/base.h"
#include "base/cursor.h"

struct sideband;
struct sideband_chunk;

/* All records at one moment, oldest first; each span holds whole records. */
struct sideband_view {
	struct cursor *spans;
	size_t n_spans;
	struct sideband_chunk **chunks; /* those the spans point into, referenced */
};

struct sideband_stats {
	uint64_t bytes; /* memory in use */
	uint64_t bytes_max;
	uint64_t lost; /* records refused since the start */
};

_must_check_ int sideband_new(uint64_t bytes_max, struct sideband **ret_sideband);
struct sideband *sideband_free(struct sideband *sideband);

DEFINE_CLEANUP(struct sideband *, sideband_free);

/*
 * Add whole, valid records (record_next() has seen them).
 *
 * Return: 0; -ENOSPC if records were refused because the limit is reached; or -ENOMEM.
 */
_must_check_ int sideband_add(struct sideband *sideband, const uint8_t *bytes, size_t size);

/* Nothing is being recorded now: begin a new epoch if the present one is large. */
void sideband_idle(struct sideband *sideband);

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
