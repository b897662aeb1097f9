/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Lane
 *
 * The way of one AUX buffer to the decoded stream: its spans are decoded one after the other, each
 * by an engine of its own, and cut into slices by the timeline. A lane makes one batch at a time;
 * the pipeline merges the lanes by the beginnings of their slices.
 *
 * Spans are cut: at the first PSB behind each multiple of LANE_CUT_SIZE (sections.h) a lane begins
 * anew, with what the PSB+ says and nothing else (engine_join_at()), and cuts its batch. So a part
 * of a span, from one cut to another, can be decoded by another lane: see ahead.h. A queue with
 * losses is not cut. Sections that cannot matter for what is asked for are passed over.
 *
 * Packets may contradict code of a JIT compiler, which means that the compiler changed the code.
 * Then the instructions that were read from that code since the last address in the packets did not
 * all run, and are removed from the batch. Those in earlier batches stay, but a contradiction comes
 * within a few instructions, and a batch has some thousand runs.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/image/space.h"
#include "decoder/pt/engine.h"
#include "decoder/sideband/timeline.h"
#include "decoder/stream/sections.h"
#include "decoder/trace/trace.h"
#include "ptd/record.h"
#include "util/vec.h"

#define LANE_CUT_SIZE (UINT64_C(1) << 13)

struct lane_config {
	const struct trace *trace;
	const struct trace_queue *queue; /* of the trace */
	const struct timeline *timeline;
	const struct engine_ops *engine;
	struct engine_config engine_config; /* but for its span */
	const struct extract *extract;      /* what is asked for; NULL: all is */
	uint64_t cut_size;                  /* LANE_CUT_SIZE, but for tests; 0: nothing is cut */
};

/* What a lane knows where it begins anew, but for who ran before. */
struct lane_joint {
	struct engine_joint engine;
	uint64_t t, tsc;
	bool is_guest;
};

struct lane {
	struct lane_config config;
	struct engine *engine;
	size_t next_span;
	uint64_t span_base;    /* bytes of the queue before the engine's span */
	uint64_t span_decoded; /* bytes of the engine's span that the stats count already */

	/* Where the span is cut. */
	struct sections sections;
	uint64_t cut;  /* the next one: offset of a PSB; the span's size: there is none */
	bool at_joint; /* lane_fill() came to a cut, the PSB at: */
	uint64_t joint;

	/* Of a part: a lane from one cut to the next, which nothing precedes. */
	bool is_part;
	bool has_turned_back; /* time went back */
	size_t n_opened;      /* slices */
	struct stay first_stay;

	/* The next losses of the queue that are not in the stream yet. */
	size_t next_loss_at; /* of those that state an offset */
	size_t next_loss;    /* of the others */

	/* The batch; it is ready if it has runs or marks. */
	struct ptd_slice slice;
	struct ptd_run *runs; /* owned; of a part borrowed */
	size_t n_runs, n_runs_max;
	VEC(struct ptd_mark) marks;
	VEC(uint32_t)
	new_runs;       /* indices of runs of blocks that were not shown when they were made */
	bool new_slice; /* the batch is the first of its slice */

	/* Where the engine stands. */
	struct stay stay;
	bool has_stay;
	struct stay
	    only_stay; /* of the only thread, if the PT has no time; once it was asked for */
	bool has_only_stay;
	bool stay_opens;    /* the next run or mark begins a slice */
	bool is_guest;      /* a guest's code runs: the sideband does not describe it */
	bool is_foreign;    /* code of processes runs that the snapshot is not about */
	uint64_t t;         /* in the stream's time */
	uint64_t tsc;       /* from which @t was computed */
	uint64_t limit;     /* a time, */
	uint64_t limit_tsc; /* and the first TSC that is not before it */
	bool ended;

	struct ptd_cpu_stats stats;
	bool lacks_kernel; /* some gaps are there because the recording has no copy of the kernel */
	uint64_t n_insns_early;
	uint64_t n_gaps[_PTD_GAP_REASONS];
	uint64_t gap_bytes[_PTD_GAP_REASONS];
};

/* All that @config points to is borrowed. Return: 0 or -ENOMEM. */
_must_check_ int lane_init(struct lane *lane, const struct lane_config *config);
void lane_deinit(struct lane *lane);

/* End the lane where it stands. The PT behind that is out of scope. */
void lane_leave_out(struct lane *lane);

/* Return: whether slices of these stays are one. */
bool lane_is_same_slice(const struct stay *a, const struct stay *b);

/*
 * Begin a part: a lane that decodes only from the cut @from of span @span to its cut @to. It goes
 * to the joint at @from. Its batches are put into lane->runs. The caller sets their place,
 * and how many there may be: at least ENGINE_STEP_RUNS_MAX. The caller must do so before
 * lane_start_part() and may do so before each lane_fill().
 *
 * Return: 0 and @ret_joint; 1 if the lane cannot begin there; or negative errno.
 */
void lane_init_part(struct lane *lane, const struct lane_config *config);
_must_check_ int lane_start_part(struct lane *lane, size_t span, uint64_t from, uint64_t to,
				 struct lane_joint *ret_joint);

/* What is known at the joint at which @lane stands. */
void lane_get_joint(const struct lane *lane, struct lane_joint *ret_joint);

/*
 * Go on where @part stands, at a joint; it began at the joint where @lane stands, and the same was
 * known there. What it counted is added, but for the instructions, which are counted with the
 * batches. @part has no engine afterwards.
 */
void lane_take_part(struct lane *lane, struct lane *part);

/*
 * Pass over sections that cannot matter for what is asked for, from the joint at which @lane
 * stands. Afterwards it stands at a joint, or has ended. Their PT is out of scope.
 *
 * Return: 0, or negative errno.
 */
_must_check_ int lane_pass_over(struct lane *lane);

/*
 * Make the next batch in place of the current one. At the end of the queue no batch is ready. At a
 * cut the batch ends, if one is ready, and lane->at_joint is true.
 *
 * Return: 0, or negative errno.
 */
_must_check_ int lane_fill(struct lane *lane);

/* Return: where the lane stands: a byte offset in the PT of its queue, as in gaps. */
uint64_t lane_offset(const struct lane *lane);

static inline bool lane_ready(const struct lane *lane)
{
	return lane->n_runs > 0 || lane->marks.n > 0;
}
