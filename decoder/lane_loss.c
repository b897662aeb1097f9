/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/lane_loss.h"

/* A gap of which the recorder tells; it stands before run @run of the batch. */
static int add_loss(struct lane *lane, enum ptd_gap_reason reason, uint64_t t, size_t run,
		    uint64_t offset)
{
	lane->stats.n_gaps++;
	lane->n_gaps[reason]++;
	return vec_push(&lane->marks, { .run = run,
					.kind = PTD_MARK_GAP,
					.reason = reason,
					.t = t,
					.offset = lane->span_base + offset });
}

int lane_tell_losses(struct lane *lane, size_t run)
{
	const struct trace_queue *queue = lane->config.queue;
	const bool timed = lane_has_time(lane);
	int r = 0;

	while (r == 0 && lane->next_loss < queue->n_losses) {
		const struct trace_loss *loss = &queue->losses[lane->next_loss];

		if (timed && loss->time > lane->t && !lane->ended)
			return 0;
		lane->next_loss++;
		r = add_loss(lane, loss->reason, timed && loss->time ? loss->time : lane->t, run,
			     lane_offset(lane));
	}
	return r;
}

/* Tell those up to @offset of a span that begins at @start of the stream, before run @run. */
static int tell_losses_at(struct lane *lane, uint64_t start, uint64_t offset, size_t run)
{
	const struct trace_queue *queue = lane->config.queue;
	int r = 0;

	while (r == 0 && lane->next_loss_at < queue->n_losses_at) {
		const struct trace_loss *loss = &queue->losses[lane->next_loss_at];
		const uint64_t at = loss->offset > start ? loss->offset - start : 0;

		if (at > offset && !lane->ended)
			return 0;
		lane->next_loss_at++;
		r = add_loss(lane, loss->reason, lane->t, run, at < offset ? at : offset);
	}
	return r;
}

int lane_tell_losses_in(struct lane *lane, size_t run)
{
	const struct trace_queue *queue = lane->config.queue;
	const struct trace_span *span = lane_span(lane);
	const uint64_t offset = lane_offset(lane);
	int r;

	if (lane->next_loss_at == queue->n_losses_at || span->size == 0)
		return 0;
	r = tell_losses_at(lane, span->offset, offset < span->size ? offset : span->size - 1, run);
	if (r == 0 && lane->next_loss_at < queue->n_losses_at)
		engine_pause_at(lane->engine,
				queue->losses[lane->next_loss_at].offset - span->offset);
	return r;
}

int lane_tell_hole(struct lane *lane, const struct trace_span *span)
{
	const size_t n_before = lane->marks.n;
	bool missing = false;
	int r;

	if (lane->next_span > 0) {
		lane->span_base += span[-1].size;
		lane->stay_opens = true;
		missing = !lane->config.facts->snapshot_mode &&
			  span->offset != span[-1].offset + span[-1].size;
	}
	r = tell_losses_at(lane, span->offset, 0, lane->n_runs);
	if (r == 0 && lane->config.queue->overwritten && lane->config.facts->snapshot_mode &&
	    span->offset > 0)
		r = add_loss(lane, PTD_GAP_OVERWRITTEN, lane->t, lane->n_runs, 0);
	if (r == 0 && lane->next_span > 0 && (missing || lane->marks.n == n_before))
		r = add_loss(lane, PTD_GAP_LOST, lane->t, lane->n_runs, 0);
	return r;
}

int lane_tell_rest(struct lane *lane)
{
	const uint64_t start = lane->next_span > 0 ? lane_span(lane)->offset : 0;
	int r;

	lane->ended = true;
	r = tell_losses_at(lane, start, lane_offset(lane), lane->n_runs);
	return r < 0 ? r : lane_tell_losses(lane, lane->n_runs);
}
