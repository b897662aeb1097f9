/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/overlay.h"

#include <errno.h>
#include <stdlib.h>

#include "decoder/calllog/calllog.h"
#include "util/map.h"
#include "util/vec.h"

/* What one thread noted. */
struct overlay_lane {
	struct calllane *lane; /* of the log */
	size_t next;           /* index of the next lane of the same thread; 0: there is none */
	struct callpiece piece;
	size_t at;      /* index in the piece of the call that is next */
	bool has_begun; /* the thread has had a run */
};

struct overlay {
	struct calllog *log;
	VEC(struct overlay_lane) lanes; /* the first stands for no lane */
	struct map by_thread;           /* pid and tid → index of its first lane */
	VEC(struct ptd_mark) marks;     /* of the batch */
};

static uint64_t key_of(uint32_t pid, uint32_t tid)
{
	return (uint64_t)pid << 32 | tid;
}

static void drop_piece(struct overlay_lane *lane)
{
	callpiece_deinit(&lane->piece);
	lane->at = 0;
}

/* --- its life --------------------------------------------------------------------------------- */

static int add_lane(struct overlay *overlay, struct calllane *lane)
{
	const uint64_t key = key_of(lane->pid, lane->tid);
	const uint64_t *first = map_get(&overlay->by_thread, key);
	const size_t index = overlay->lanes.n;
	int r;

	r = vec_push(&overlay->lanes, { .lane = lane, .next = first ? (size_t)*first : 0 });
	return r < 0 ? r : map_put(&overlay->by_thread, key, index);
}

int overlay_new(struct calllog *log, struct overlay **ret_overlay)
{
	_cleanup_(overlay_freep) struct overlay *overlay = calloc(1, sizeof(*overlay));
	int r = overlay ? vec_push(&overlay->lanes, {}) : -ENOMEM;

	for (size_t i = 0; i < log->lanes.n && r == 0; i++)
		r = add_lane(overlay, log->lanes.items[i]);
	if (r < 0)
		return r;
	overlay->log = log;
	*ret_overlay = TAKE(overlay);
	return 0;
}

struct overlay *overlay_free(struct overlay *overlay)
{
	if (!overlay)
		return NULL;
	vec_deinit_each(&overlay->lanes, lane, drop_piece(lane));
	map_deinit(&overlay->by_thread);
	vec_deinit(&overlay->marks);
	calllog_free(overlay->log);
	free(overlay);
	return NULL;
}

int overlay_start(struct overlay *overlay, char **reterr_message)
{
	int r = 0;

	for (size_t i = 1; i < overlay->lanes.n && r == 0; i++) {
		struct overlay_lane *lane = &overlay->lanes.items[i];

		drop_piece(lane);
		lane->has_begun = false;
		r = overlay->log->ops->begin(overlay->log, lane->lane, reterr_message);
	}
	return r;
}

/* --- what is noted ---------------------------------------------------------------------------- */

/*
 * Find the next call of the lane, which is valid until this is called again.
 *
 * Return: 0 and @ret_call, NULL: there is none; or negative errno and @reterr_message.
 */
static int next_of_lane(struct overlay *overlay, struct overlay_lane *lane,
			const struct ptd_logged_call **ret_call, char **reterr_message)
{
	int r = 0;

	while (lane->at == lane->piece.calls.n && !lane->lane->ended && r == 0) {
		lane->piece.calls.n = lane->piece.marks.n = lane->at = 0;
		r = overlay->log->ops->read(overlay->log, lane->lane, &lane->piece, reterr_message);
	}
	*ret_call = NULL;
	if (r < 0)
		return r;
	if (lane->at < lane->piece.calls.n)
		*ret_call = &lane->piece.calls.items[lane->at];
	else
		drop_piece(lane);
	return 0;
}

/* Likewise of a thread, whose lanes are @first and those that it leads to, and in which lane. */
static int next_of_thread(struct overlay *overlay, size_t first, struct overlay_lane **ret_lane,
			  const struct ptd_logged_call **ret_call, char **reterr_message)
{
	*ret_call = NULL;
	for (size_t i = first; i != 0; i = overlay->lanes.items[i].next) {
		struct overlay_lane *lane = &overlay->lanes.items[i];
		const struct ptd_logged_call *call;
		const int r = next_of_lane(overlay, lane, &call, reterr_message);

		if (r < 0)
			return r;
		if (!call || (*ret_call && (*ret_call)->t <= call->t))
			continue;
		*ret_call = call;
		*ret_lane = lane;
	}
	return 0;
}

/* --- the batch -------------------------------------------------------------------------------- */

/* What is known while a batch is gone through. */
struct overlaying {
	struct overlay *overlay;
	const struct ptd_batch *batch;
	size_t first; /* lane of the thread */
	size_t mark;  /* index of the next mark of the batch */
	char **reterr_message;
};

static int keep_mark(const struct overlaying *o, const struct ptd_mark *mark)
{
	return vec_push(&o->overlay->marks, *mark);
}

/* Keep the marks before run @i that are not later than @t. */
static int keep_marks(struct overlaying *o, size_t i, uint64_t t)
{
	const struct ptd_batch *batch = o->batch;
	int r = 0;

	while (r == 0 && o->mark < batch->n_marks && batch->marks[o->mark].run == i &&
	       batch->marks[o->mark].t <= t)
		r = keep_mark(o, &batch->marks[o->mark++]);
	return r;
}

static enum ptd_mark_kind kind_of(const struct ptd_logged_call *call)
{
	return call->kind == PTD_LOGGED_ENTER   ? PTD_MARK_BEGIN
	       : call->kind == PTD_LOGGED_POINT ? PTD_MARK_POINT
						: PTD_MARK_END;
}

/* Lay what the thread noted until @t before run @i; or leave it out, if @is_first. */
static int lay_calls(struct overlaying *o, size_t i, uint64_t t, bool is_first)
{
	const struct ptd_logged_call *call;
	struct overlay_lane *lane;
	int r;

	while ((r = next_of_thread(o->overlay, o->first, &lane, &call, o->reterr_message)) == 0 &&
	       call && (is_first ? call->t < t : call->t <= t)) {
		lane->at++;
		if (is_first)
			continue;
		r = keep_marks(o, i, call->t);
		if (r == 0)
			r = keep_mark(o, &(struct ptd_mark){ .run = i,
							     .kind = kind_of(call),
							     .t = call->t,
							     .value = call->symbol });
		if (r < 0)
			break;
	}
	return r;
}

static int lay_thread(struct overlaying *o)
{
	struct overlay_lane *lane = &o->overlay->lanes.items[o->first];
	const struct ptd_batch *batch = o->batch;
	int r = 0;

	for (size_t i = 0; i < batch->n_runs && r == 0; i++) {
		const uint64_t t = batch->runs[i].t;

		/* Most runs have the time of the one before. */
		if (i > 0 && t == batch->runs[i - 1].t) {
			r = keep_marks(o, i, UINT64_MAX);
			continue;
		}
		if (!lane->has_begun)
			r = lay_calls(o, i, t, true);
		lane->has_begun = true;
		if (r == 0)
			r = lay_calls(o, i, t, false);
		if (r == 0)
			r = keep_marks(o, i, UINT64_MAX);
	}
	return r < 0 ? r : keep_marks(o, batch->n_runs, UINT64_MAX);
}

int overlay_batch(struct overlay *overlay, struct ptd_batch *batch, char **reterr_message)
{
	const struct ptd_slice *slice = batch->slice;
	const uint64_t *first = slice->tid == PTD_ID_UNKNOWN
				    ? NULL
				    : map_get(&overlay->by_thread, key_of(slice->pid, slice->tid));
	struct overlaying o = { .overlay = overlay,
				.batch = batch,
				.first = first ? (size_t)*first : 0,
				.reterr_message = reterr_message };
	int r;

	if (!first || batch->n_runs == 0)
		return 0;
	overlay->marks.n = 0;
	r = lay_thread(&o);
	if (r < 0)
		return r;
	batch->marks = overlay->marks.items;
	batch->n_marks = overlay->marks.n;
	return 0;
}

/* --- counts ----------------------------------------------------------------------------------- */

uint64_t overlay_n_calls(const struct overlay *overlay)
{
	return overlay->log->n_calls;
}

size_t overlay_n_unknown(const struct overlay *overlay, uint32_t *ret_pid, uint32_t *ret_tid)
{
	size_t n = 0;

	for (size_t i = overlay->lanes.n; i-- > 1;) {
		const struct calllane *lane = overlay->lanes.items[i].lane;
		const uint64_t *first = map_get(&overlay->by_thread, key_of(lane->pid, lane->tid));

		if (overlay->lanes.items[*first].has_begun)
			continue;
		*ret_pid = lane->pid;
		*ret_tid = lane->tid;
		n++;
	}
	return n;
}
