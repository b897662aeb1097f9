/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Ahead
 *
 * Decodes parts of a lane's spans, from one cut to the next, in other threads, ahead of the lane. A
 * part begins without knowing what came before: with the PSB+ at its cut. The lane does the same
 * wherever it comes to a cut (lane.h), so what a part decodes is what the lane would have decoded,
 * if both know the same at the joint. Whether they do is compared; if not, or if the part was not
 * plain (it has a gap, or time goes back), the part is dropped and the lane goes on by itself. So
 * the stream does not depend on the number of threads.
 *
 * A lane has a limited number of parts, which bounds the memory and lets a slow reader stop the
 * threads. Where part after part does not fit, as in a stream whose time went back, threads would
 * decode everything in vain: there the lane goes on by itself, and only now and then is one part
 * begun, to find out whether parts fit again.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/base.h"
#include "decoder/image/cache.h"
#include "decoder/stream/lane.h"
#include "decoder/stream/runpool.h"
#include "decoder/util/threads.h"
#include "util/vec.h"

struct part;

/* How many parts were begun, and how many fitted. */
struct ahead_counts {
	uint64_t n_begun, n_used;
};

struct ahead_config {
	struct ptd_threads *threads; /* borrowed; NULL: nothing is decoded ahead */
	struct views *views;         /* borrowed: for the parts, of all threads */
	struct runpool *runs;        /* borrowed: where parts have their runs */
	struct ahead_counts *counts; /* borrowed: the parts of all lanes */
	size_t n_parts;              /* of a lane */
};

/* A lane, and what is decoded ahead of it. */
struct ahead {
	struct ahead_config config;
	struct lane lane;

	VEC(struct part *) parts; /* in the order of the span */
	VEC(struct part *) spare;
	bool has_span;
	size_t span;              /* that the parts are of, */
	struct sections sections; /* which are looked up ahead, apart from what the lane reads, */
	uint64_t end;             /* and the cut where the last part ends */
	size_t n_unfit;           /* parts that did not fit since one did; */
	size_t n_left;     /* and cuts that are left to the lane before another part is begun */
	struct part *part; /* that the lane stands at the beginning of; its batches are given out */
	size_t n_given;

	/* The batch, of lane.slice; it is ready if it has runs or marks. */
	const struct ptd_run *runs;
	size_t n_runs;
	struct ptd_hold *hold; /* of the runs; NULL: they are the lane's */
	const struct ptd_mark *marks;
	size_t n_marks;
	bool new_slice; /* the batch is the first of its slice */

	/* The blocks of the batch that were not shown when it was decoded, in the order in which
	 * they first run. */
	const struct ptd_block *const *new_blocks;
	size_t n_new_blocks;
	struct cache_blocks own_new_blocks; /* if the batch is the lane's */
};

/* What the configurations point to is borrowed. Return: 0 or -ENOMEM. */
_must_check_ int ahead_init(struct ahead *ahead, const struct ahead_config *config,
			    const struct lane_config *lane_config);
void ahead_deinit(struct ahead *ahead);

/*
 * Make the next batch in place of the current one. At the end of the queue no batch is ready.
 *
 * Return: 0, or negative errno.
 */
_must_check_ int ahead_fill(struct ahead *ahead);

static inline bool ahead_ready(const struct ahead *ahead)
{
	return ahead->n_runs > 0 || ahead->n_marks > 0;
}
