/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Segment table
 *
 * The segments of a view by address. Threads may look for segments while another thread adds one:
 * looking takes no lock.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

struct seg;
struct segtable_slots;

/* All bytes are 0 at first. */
struct segtable {
	struct segtable_slots *slots;
	size_t n_used;
	size_t n_bytes; /* of memory */
};

/* No thread may look for segments any more. */
void segtable_deinit(struct segtable *table);

/* Return: the segment that was put at @ip last; NULL if there is none. */
struct seg *segtable_find(const struct segtable *table, uint64_t ip);

/* Put @seg at @ip. One thread at a time may do this. Return: 0 or -ENOMEM. */
_must_check_ int segtable_put(struct segtable *table, uint64_t ip, struct seg *seg);
