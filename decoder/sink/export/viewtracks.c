/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/sink/export/viewtracks.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The time between a gap and what follows it, in ns: at least as many as functions were open before
 * the gap, but not more than ROOM_MAX, and ROOM_UNSEEN for others. Up to ROOM_MORE in addition are
 * kept for outer functions; the gap has what is left. */
#define ROOM_MAX    1024
#define ROOM_UNSEEN 64
#define ROOM_MORE   256

const char *const viewtrack_categories[_VIEWTRACK_CATEGORIES] = {
	[VIEWTRACK_USER] = "user",   [VIEWTRACK_KERNEL] = "kernel", [VIEWTRACK_JIT] = "jit",
	[VIEWTRACK_GAP] = "gap",     [VIEWTRACK_MARK] = "mark",     [VIEWTRACK_SIGNAL] = "signal",
	[VIEWTRACK_NOTED] = "event",
};

enum viewtrack_category viewtrack_category_of(const struct ptd_function *function)
{
	if (function->address >> 63)
		return VIEWTRACK_KERNEL;
	return strcmp(function->object->name, "[jit]") == 0 ? VIEWTRACK_JIT : VIEWTRACK_USER;
}

void viewtracks_deinit(struct viewtracks *tracks)
{
	vec_deinit(&tracks->all);
	map_deinit(&tracks->threads);
	open_stacks_deinit(&tracks->stacks);
	vec_deinit(&tracks->shown);
	vec_deinit(&tracks->is_seen);
	vec_deinit(&tracks->signals);
	map_deinit(&tracks->cpus);
	vec_deinit_each(&tracks->noted, noted, vec_deinit(&noted->open));
	map_deinit(&tracks->noted_by_thread);
}

const char *viewtrack_name(const struct viewtrack *track, char ret_name[static VIEWTRACK_NAME])
{
	const char *comm = viewtrack_comm(track);

	if (track->noted_by != VIEWTRACK_NONE)
		(void)snprintf(ret_name, VIEWTRACK_NAME, "%.32s %" PRIu32 ", events", comm,
			       track->noted_by);
	else if (track->stack != VIEWTRACK_NONE)
		(void)snprintf(ret_name, VIEWTRACK_NAME, "%.32s, stack %" PRIu32, comm,
			       track->stack);
	else
		(void)snprintf(ret_name, VIEWTRACK_NAME, "%.*s", VIEWTRACK_NAME - 1, comm);
	return ret_name;
}

/* --- tracks ----------------------------------------------------------------------------------- */

static uint32_t shown_id(uint32_t id)
{
	return id == PTD_ID_UNKNOWN ? VIEWTRACK_TID_UNKNOWN : id;
}

static uint64_t key_of(uint32_t pid, uint32_t tid)
{
	return (uint64_t)pid << 32 | tid;
}

/* Make a track. Return: 0 or negative errno. */
static int make_track(struct viewtracks *ts, const struct viewtrack *track, uint32_t *ret_track)
{
	int r = vec_push(&ts->all, *track);

	if (r < 0)
		return r;
	*ret_track = (uint32_t)ts->all.n - 1;
	ts->all.items[*ret_track].id = *ret_track;
	return ts->ops->name(ts->state, &ts->all.items[*ret_track]);
}

/* Get the track of a thread. Return: 0 or negative errno. */
static int get_thread_track(struct viewtracks *ts, uint32_t pid, uint32_t tid, const char *comm,
			    uint32_t *ret_track)
{
	const struct viewtrack track = { .pid = shown_id(pid),
					 .tid = shown_id(tid),
					 .stack = VIEWTRACK_NONE,
					 .noted_by = VIEWTRACK_NONE,
					 .comm = comm };
	uint64_t id;
	const int r = map_number(&ts->threads, key_of(pid, tid), ts->all.n, &id);

	*ret_track = (uint32_t)id;
	return r > 0 ? make_track(ts, &track, ret_track) : r;
}

static struct viewtrack_stack *get_stack(struct viewtracks *ts, uint32_t id)
{
	return vec_at(&ts->shown, id, { .track = VIEWTRACK_NONE, .own = VIEWTRACK_NONE });
}

/* Show the stack on a track of its own. Return: 0 or negative errno. */
static int show_further(struct viewtracks *ts, const struct ptd_call_thread *thread, uint32_t id)
{
	struct viewtrack track = { .pid = shown_id(thread->pid),
				   .stack = id,
				   .noted_by = VIEWTRACK_NONE,
				   .comm = thread->comm };
	struct viewtrack_stack *stack = get_stack(ts, id);
	uint32_t made;
	int r;

	if (!stack)
		return -ENOMEM;
	if (stack->own != VIEWTRACK_NONE && ts->all.items[stack->own].pid == track.pid) {
		stack->track = stack->own;
		return 0;
	}
	track.tid = VIEWTRACK_TID_UNKNOWN + ++ts->n_further;
	r = make_track(ts, &track, &made);
	if (r == 0)
		stack->track = stack->own = made;
	return r;
}

/*
 * Show the first stack of a thread on the thread's track, unless another thread of that number has
 * it, as each CPU has a thread 0.
 */
static int show_first(struct viewtracks *ts, const struct ptd_call_thread *thread, uint32_t id)
{
	const struct ptd_call_thread *owner;
	bool *seen = vec_at(&ts->is_seen, thread->id, false);
	uint32_t track;
	int r;

	if (!seen)
		return -ENOMEM;
	*seen = true;
	r = get_thread_track(ts, thread->pid, thread->tid, thread->comm, &track);
	if (r < 0)
		return r;
	owner = ts->all.items[track].owner;
	if (owner && owner != thread && !owner->ended)
		return show_further(ts, thread, id);
	if (!get_stack(ts, id))
		return -ENOMEM;
	ts->all.items[track].owner = thread;
	ts->shown.items[id].track = track;
	return 0;
}

static bool is_seen(const struct viewtracks *ts, const struct ptd_call_thread *thread)
{
	return thread->id < ts->is_seen.n && ts->is_seen.items[thread->id];
}

/* Get the track that shows the stack of @call. Return: 0 or negative errno. */
static inline int get_track(struct viewtracks *ts, const struct ptd_call_thread *thread,
			    const struct ptd_call *call, struct viewtrack **ret_track)
{
	struct viewtrack *track;
	int r = 0;

	if (!is_seen(ts, thread) && call->kind == PTD_CALL_ENTER)
		r = show_first(ts, thread, call->stack);
	else if (call->stack >= ts->shown.n || ts->shown.items[call->stack].track == VIEWTRACK_NONE)
		r = show_further(ts, thread, call->stack);
	if (r < 0)
		return r;
	ts->thread = thread;
	ts->track = ts->shown.items[call->stack].track;
	track = &ts->all.items[ts->track];
	*ret_track = track;
	/* Another thread may go on with a further stack. */
	if (track->stack != VIEWTRACK_NONE || track->comm == thread->comm)
		return 0;
	if (track->comm && thread->comm && strcmp(track->comm, thread->comm) == 0)
		return 0;
	track->comm = thread->comm;
	return ts->ops->name(ts->state, track);
}

/* --- functions -------------------------------------------------------------------------------- */

static uint64_t time_of(const struct viewtracks *ts, const struct ptd_call *call)
{
	return ts->clock == PTD_CLOCK_NONE ? VIEWTRACK_START + call->n_insns : call->t;
}

static uint64_t not_before(uint64_t t, uint64_t first)
{
	return t > first ? t : first;
}

static int end_gap(struct viewtracks *ts, struct viewtrack *track, uint64_t t)
{
	track->has_gap = false;
	track->last = t;
	return ts->ops->end(ts->state, track, t, NULL);
}

/* The first function since the start, or behind a gap, is entered. */
static int begin_part(struct viewtracks *ts, struct viewtrack *track, uint64_t t)
{
	const bool is_behind_gap = track->has_gap || track->n_before_gap > 0;
	const uint64_t needed = is_behind_gap ? track->n_before_gap + ROOM_UNSEEN : 0;
	uint64_t room;

	track->first = not_before(t, track->last + needed);
	room = track->first - track->last;
	/* Before the first one is nothing. */
	if (track->last > 0 && room > needed + ROOM_MORE)
		room = needed + ROOM_MORE;
	track->floor = track->first - room;
	track->n_outer = 0;
	track->part++;
	return track->has_gap ? end_gap(ts, track, track->floor) : 0;
}

static int enter(struct viewtracks *ts, struct viewtrack *track, const struct ptd_call *call)
{
	struct open_stack *stack = open_stacks_get(&ts->stacks, call->stack);
	const bool is_first = stack && stack->frames.n == 0;
	const bool is_outer =
	    is_first && (call->how == PTD_CALL_BY_INFERENCE || call->how == PTD_CALL_BY_RESUMPTION);
	/* Calls that an input states begin without PTD_CALL_BY_START. */
	const bool is_start =
	    is_first && (call->how == PTD_CALL_BY_START || track->part == 0 || track->has_gap);
	struct open_frame *frame;
	int r = 0;

	if (!stack || open_stack_push(stack, call) < 0)
		return -ENOMEM;
	frame = open_stack_top(stack);
	frame->is_printed = true;
	if (is_start)
		r = begin_part(ts, track, time_of(ts, call));
	if (r == 0 && is_outer) {
		frame->t = track->first - ++track->n_outer;
		frame->is_printed = track->n_outer <= track->first - track->floor;
		ts->n_outer_left_out += !frame->is_printed;
		if (call->how == PTD_CALL_BY_RESUMPTION && track->n_before_gap > 0)
			track->n_before_gap--;
		return frame->is_printed ? ts->ops->begin(ts->state, track, frame->t, frame) : 0;
	}
	frame->t = is_start ? track->first : not_before(time_of(ts, call), track->last);
	if (r == 0 && track->has_gap)
		r = end_gap(ts, track, frame->t);
	track->last = frame->t;
	return r < 0 ? r : ts->ops->begin(ts->state, track, frame->t, frame);
}

static int leave(struct viewtracks *ts, struct viewtrack *track, const struct ptd_call *call)
{
	struct open_stack *stack = open_stacks_get(&ts->stacks, call->stack);
	struct open_frame *frame = stack ? open_stack_top(stack) : NULL;
	bool is_shown, is_last;
	int r = 0;

	if (!stack)
		return -ENOMEM;
	if (!frame)
		return 0;
	is_shown = frame->is_printed;
	is_last = stack->frames.n == 1;
	open_stack_pop(stack);
	track->last = not_before(time_of(ts, call), track->last);
	if (track->has_gap)
		r = end_gap(ts, track, track->last);
	if (r == 0 && is_shown)
		r = ts->ops->end(ts->state, track, track->last, call);
	if (call->how == PTD_CALL_BY_GAP && track->n_before_gap < ROOM_MAX)
		track->n_before_gap++;
	if (call->how == PTD_CALL_BY_END && is_last) {
		track->n_before_gap = 0;
		ts->shown.items[call->stack].track = VIEWTRACK_NONE;
	}
	return r;
}

/* The functions that @call moves end on one track and go on on another. */
static int move_spans(struct viewtracks *ts, const struct ptd_call *call)
{
	const struct open_stack *from = &ts->stacks.items.items[call->stack];
	const struct open_stack *to = &ts->stacks.items.items[call->moved_to];
	struct viewtrack *track = &ts->all.items[ts->shown.items[call->stack].track];
	size_t n = call->n_moved < from->frames.n ? call->n_moved : from->frames.n;
	int r = 0;

	track->last = not_before(time_of(ts, call), track->last);
	for (size_t i = from->frames.n; r == 0 && i-- > from->frames.n - n;)
		if (from->frames.items[i].is_printed)
			r = ts->ops->end(ts->state, track, track->last, NULL);
	if (r == 0)
		r = open_stacks_move(&ts->stacks, call);
	track = &ts->all.items[ts->shown.items[call->moved_to].track];
	track->last = not_before(time_of(ts, call), track->last);
	for (size_t i = to->frames.n - (r == 0 ? n : 0); r == 0 && i < to->frames.n; i++)
		if (to->frames.items[i].is_printed)
			r = ts->ops->begin(ts->state, track, track->last, &to->frames.items[i]);
	return r;
}

static int switch_stack(struct viewtracks *ts, const struct ptd_call_thread *thread,
			const struct ptd_call *call)
{
	const struct open_stack *stack = open_stacks_get(&ts->stacks, call->stack);
	const bool is_new = stack && stack->frames.n == 0 && !call->function;
	struct viewtrack_stack *to = get_stack(ts, call->stack);
	int r;

	if (!stack || !to)
		return -ENOMEM;
	if (is_new || to->track == VIEWTRACK_NONE) {
		r = show_further(ts, thread, call->stack);
		if (r < 0)
			return r;
	}
	ts->thread = thread;
	ts->track = ts->shown.items[call->stack].track;
	if (call->n_moved == 0 || call->stack == call->moved_to)
		return 0;
	to = get_stack(ts, call->moved_to);
	if (!to || !open_stacks_get(&ts->stacks,
				    call->stack > call->moved_to ? call->stack : call->moved_to))
		return -ENOMEM;
	if (to->track == VIEWTRACK_NONE) {
		r = show_further(ts, thread, call->moved_to);
		if (r < 0)
			return r;
	}
	return move_spans(ts, call);
}

int viewtracks_call(struct viewtracks *tracks, const struct ptd_call_thread *thread,
		    const struct ptd_call *call)
{
	struct viewtrack *track;
	int r;

	if (call->kind == PTD_CALL_SWITCH)
		return switch_stack(tracks, thread, call);
	r = get_track(tracks, thread, call, &track);
	if (r < 0)
		return r;
	return call->kind == PTD_CALL_ENTER ? enter(tracks, track, call)
					    : leave(tracks, track, call);
}

/* --- marks ------------------------------------------------------------------------------------ */

/* Signals and system calls are too many, and calls show them. */
static bool is_shown(const struct ptd_mark *mark)
{
	return mark->kind != PTD_MARK_ASYNC && mark->kind != PTD_MARK_OFF;
}

/* Get the track that the thread of the slice is on. Return: 0 or negative errno. */
static int get_slice_track(struct viewtracks *ts, const struct ptd_slice *slice,
			   struct viewtrack **ret_track)
{
	const struct ptd_call_thread *thread = ts->thread;
	uint32_t id = ts->track;
	int r = 0;

	if (!thread || thread->pid != slice->pid || thread->tid != slice->tid)
		r = get_thread_track(ts, slice->pid, slice->tid, slice->comm, &id);
	if (r == 0)
		*ret_track = &ts->all.items[id];
	return r;
}

/* Get what the thread of the slice noted, with its track. Return: 0 or negative errno. */
static int get_noted(struct viewtracks *ts, const struct ptd_slice *slice,
		     struct viewtrack_noted **ret_noted)
{
	const uint64_t key = key_of(slice->pid, slice->tid);
	const struct viewtrack track = { .pid = shown_id(slice->pid),
					 .tid = VIEWTRACK_TID_UNKNOWN + ts->n_further + 1,
					 .stack = VIEWTRACK_NONE,
					 .noted_by = shown_id(slice->tid),
					 .comm = slice->comm };
	struct viewtrack_noted noted = {};
	uint64_t index;
	int r = map_number(&ts->noted_by_thread, key, ts->noted.n, &index);

	if (r > 0) {
		ts->n_further++;
		r = get_thread_track(ts, slice->pid, slice->tid, slice->comm, &noted.of_thread);
		if (r == 0)
			r = make_track(ts, &track, &noted.track);
		if (r == 0)
			r = vec_push(&ts->noted, noted);
	}
	if (r < 0)
		return r;
	*ret_noted = &ts->noted.items[index];
	return 0;
}

/* End the regions from @first on. */
static int end_noted(struct viewtracks *ts, struct viewtrack_noted *noted, size_t first)
{
	const struct viewtrack *track = &ts->all.items[noted->track];
	int r = 0;

	for (size_t i = noted->open.n; r == 0 && i-- > first;)
		r = ts->ops->end(ts->state, track, track->last, NULL);
	return r;
}

/* The region ends. One that is not open began before the trace, and is shown as a point. */
static int leave_noted(struct viewtracks *ts, struct viewtrack_noted *noted,
		       const struct ptd_symbol *symbol)
{
	const struct viewtrack *track = &ts->all.items[noted->track];
	size_t i = noted->open.n;
	int r;

	while (i > 0 && noted->open.items[i - 1] != symbol)
		i--;
	if (i == 0)
		return ts->ops->noted(ts->state, track, track->last, symbol, false);
	r = end_noted(ts, noted, i - 1);
	noted->open.n--;
	for (i--; r == 0 && i < noted->open.n; i++) {
		noted->open.items[i] = noted->open.items[i + 1];
		r = ts->ops->noted(ts->state, track, track->last, noted->open.items[i], true);
	}
	return r;
}

/* Show what the thread of the slice noted itself. */
static int show_noted(struct viewtracks *ts, const struct ptd_slice *slice,
		      const struct ptd_mark *mark)
{
	const struct ptd_symbol *symbol = ts->symbols[mark->value];
	struct viewtrack_noted *noted;
	struct viewtrack *track;
	int r;

	r = get_noted(ts, slice, &noted);
	if (r < 0)
		return r;
	track = &ts->all.items[noted->track];
	track->last = not_before(mark->t, track->last);
	if (mark->kind == PTD_MARK_BEGIN && noted->open.n < VIEWTRACK_NOTED_MAX) {
		r = vec_push(&noted->open, symbol);
		return r < 0 ? r : ts->ops->noted(ts->state, track, track->last, symbol, true);
	}
	if (mark->kind != PTD_MARK_END)
		return ts->ops->noted(ts->state, track, track->last, symbol, false);
	return leave_noted(ts, noted, symbol);
}

int viewtracks_mark(void *state, const struct ptd_slice *slice, const struct ptd_mark *mark)
{
	struct viewtracks *tracks = state;
	struct viewtrack *track = NULL;
	uint64_t t = mark->t;
	int r;

	if (!is_shown(mark))
		return 0;
	if (ptd_mark_has_name(mark))
		return show_noted(tracks, slice, mark);
	r = get_slice_track(tracks, slice, &track);
	if (r < 0)
		return r;
	if (tracks->clock == PTD_CLOCK_NONE)
		t = not_before(track->last, VIEWTRACK_START);
	if (mark->kind != PTD_MARK_GAP && mark->kind != PTD_MARK_OUT_OF_SCOPE)
		return tracks->ops->mark(tracks->state, track, t, mark);
	/* When a gap began that comes first is not known. */
	if (track->last == 0 && t > ROOM_UNSEEN + ROOM_MORE)
		t -= ROOM_UNSEEN + ROOM_MORE;
	track->last = not_before(t, track->last);
	if (track->has_gap) {
		r = end_gap(tracks, track, track->last);
		if (r < 0)
			return r;
	}
	track->has_gap = true;
	return tracks->ops->begin_gap(tracks->state, track, track->last, mark);
}

int viewtracks_sideband(void *state, const struct ptd_sideband *record)
{
	struct viewtracks *tracks = state;
	const bool is_fatal = record->kind == PTD_SIDEBAND_EXIT && record->signal != 0;

	if (record->kind != PTD_SIDEBAND_SIGNAL && !is_fatal)
		return 0;
	if (tracks->signals.n == VIEWTRACK_SIGNALS_MAX) {
		tracks->n_signals_left_out++;
		return 0;
	}
	return vec_push(&tracks->signals, { .t = record->t,
					    .handler = is_fatal ? 0 : record->address,
					    .pid = record->pid,
					    .tid = record->tid,
					    .signal = record->signal,
					    .code = record->code,
					    .is_fatal = is_fatal });
}

/* --- CPUs ------------------------------------------------------------------------------------- */

/* The thread of the slice comes to its CPU, or leaves it. */
static int show_run(struct viewtracks *ts, uint64_t t, bool is_in)
{
	const struct ptd_slice *slice = &ts->slice;
	const uint64_t *left = map_get(&ts->cpus, slice->cpu);
	uint32_t track = 0;
	int r;

	r = get_thread_track(ts, slice->pid, slice->tid, slice->comm, &track);
	if (r < 0)
		return r;
	t = not_before(t, left ? *left : 0);
	r = map_put(&ts->cpus, slice->cpu, t);
	return r < 0 ? r : ts->ops->run(ts->state, slice->cpu, t, &ts->all.items[track], is_in);
}

int viewtracks_batch(void *state, const struct ptd_batch *batch, uint64_t t_end)
{
	struct viewtracks *tracks = state;
	int r = 0;

	if (!batch)
		return 0;
	tracks->symbols = batch->symbols;
	if (tracks->clock == PTD_CLOCK_NONE)
		return 0;
	if (!tracks->is_running || tracks->slice.id != batch->slice->id) {
		if (tracks->is_running)
			r = show_run(tracks, tracks->t_end, false);
		tracks->slice = *batch->slice;
		tracks->t_end = batch->slice->t0;
		tracks->is_running = true;
		if (r == 0)
			r = show_run(tracks, batch->slice->t0, true);
	}
	tracks->t_end = not_before(t_end, tracks->t_end);
	return r;
}

static int show_snapshot(struct viewtracks *ts)
{
	const struct viewtrack track = { .pid = VIEWTRACK_PID_OF_RECORDER,
					 .tid = VIEWTRACK_PID_OF_RECORDER,
					 .stack = VIEWTRACK_NONE,
					 .noted_by = VIEWTRACK_NONE,
					 .comm = "snapshot" };
	uint32_t made;
	int r;

	if (ts->snapshot_taken == 0 || !ts->ops->snapshot)
		return 0;
	r = make_track(ts, &track, &made);
	return r < 0 ? r : ts->ops->snapshot(ts->state, &ts->all.items[made], ts->snapshot_taken);
}

int viewtracks_finish(struct viewtracks *tracks)
{
	int r = 0;

	if (tracks->is_running)
		r = show_run(tracks, tracks->t_end, false);
	for (size_t i = 0; r == 0 && i < tracks->all.n; i++) {
		struct viewtrack *track = &tracks->all.items[i];

		if (track->has_gap)
			r = end_gap(tracks, track, not_before(tracks->t_end, track->last));
	}
	for (size_t i = 0; r == 0 && i < tracks->noted.n; i++) {
		struct viewtrack_noted *noted = &tracks->noted.items[i];
		struct viewtrack *track = &tracks->all.items[noted->track];

		track->last = not_before(tracks->all.items[noted->of_thread].last, track->last);
		r = end_noted(tracks, noted, 0);
	}
	for (size_t i = 0; r == 0 && i < tracks->signals.n; i++) {
		const struct viewtrack_signal *signal = &tracks->signals.items[i];
		const uint64_t *track = map_get(&tracks->threads, key_of(signal->pid, signal->tid));

		/* Threads that are not in the stream were not asked for. */
		if (track && tracks->clock != PTD_CLOCK_NONE)
			r = tracks->ops->signal(tracks->state, &tracks->all.items[*track], signal);
	}
	return r < 0 ? r : show_snapshot(tracks);
}

/* --- as a sink -------------------------------------------------------------------------------- */

void viewtracks_init(struct viewtracks *tracks, const struct viewtracks_ops *ops,
		     const struct ptd_info *info)
{
	*tracks = (struct viewtracks){ .ops = ops,
				       .state = tracks,
				       .clock = info->clock,
				       .snapshot_taken = info->snapshot_taken };
}

int viewtracks_calls(void *state, const struct ptd_call_batch *calls)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < calls->n_calls; i++)
		r = viewtracks_call(state, calls->thread, &calls->calls[i]);
	return r;
}

const char *viewtracks_omission(void *state)
{
	struct viewtracks *tracks = state;

	if (tracks->n_outer_left_out == 0 && tracks->n_signals_left_out == 0)
		return NULL;
	(void)snprintf(
	    tracks->omission, sizeof(tracks->omission),
	    "functions that were open before a gap and for which there was no room behind "
	    "it: %" PRIu64 "; signals beyond the first %u: %" PRIu64,
	    tracks->n_outer_left_out, VIEWTRACK_SIGNALS_MAX, tracks->n_signals_left_out);
	return tracks->omission;
}
