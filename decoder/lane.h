/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Lane
 *
 * One AUX buffer on its way to the stream: the spans of a queue, one engine after the other, cut
 * into slices by the timeline. A lane is asked for one batch at a time; the pipeline merges the
 * lanes by the slice that each has ready.
 *
 * Where packets contradict code that a JIT compiler made, it changed that code; what was read in it
 * since packets told an address last did not all run, and is taken back. (Only from the batch that
 * is being filled, of some thousand runs: contradictions come within a few.)
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/image/space.h"
#include "decoder/pt/engine.h"
#include "decoder/sideband/timeline.h"
#include "decoder/trace/trace.h"
#include "ptd/record.h"
#include "util/vec.h"

struct lane_config {
	const struct trace *trace;
	const struct trace_queue *queue; /* of the trace */
	const struct timeline *timeline;
	const struct engine_ops *engine;
	struct engine_config engine_config; /* but for its span */
};

struct lane {
	struct lane_config config;
	struct engine *engine;
	size_t next_span;
	uint64_t span_base;    /* bytes of the queue before the engine's span */
	uint64_t span_decoded; /* of the engine's span, already in the stats */
	uint64_t span_evicted; /* of its bytes, how many have been evicted from memory */

	/* Losses of the queue that are still to be told. */
	size_t next_loss_at; /* of those that tell where they are */
	size_t next_loss;    /* of the others */

	/* The batch that is ready: valid if it has runs or marks. */
	struct ptd_slice slice;
	struct ptd_run *runs;
	size_t n_runs;
	VEC(struct ptd_mark) marks;
	bool new_slice; /* the batch is the first of its slice */

	/* Where the engine stands. */
	struct stay stay;
	bool has_stay;
	struct stay only_stay; /* of whoever ran where there is no time, once that was asked */
	bool has_only_stay;
	bool stay_opens; /* the next run or mark begins a slice */
	bool is_guest;   /* what runs is a guest's code, which the records say nothing of */
	bool is_foreign; /* what runs is certainly of processes that were not asked for */
	uint64_t t;
	uint64_t tsc; /* that @t was made from */
	bool ended;

	struct ptd_cpu_stats stats;
	uint64_t n_insns_early;
	uint64_t n_gaps[_PTD_GAP_REASONS];
	uint64_t gap_bytes[_PTD_GAP_REASONS];
};

/* Return: 0 or -ENOMEM. */
_must_check_ int lane_init(struct lane *lane, const struct lane_config *config);
void lane_deinit(struct lane *lane);

/*
 * Decode until the next batch is ready or the queue is over (then it has neither runs nor marks).
 *
 * Return: 0, or negative errno.
 */
_must_check_ int lane_fill(struct lane *lane);

static inline bool lane_ready(const struct lane *lane)
{
	return lane->n_runs > 0 || lane->marks.n > 0;
}
