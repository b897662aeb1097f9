/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/sink/html/trackspans.h"

#include <errno.h>
#include <string.h>

#include "decoder/sink/answer/profile.h"

/* Add the span, unless its track is left out. Return: 0 or -ENOMEM. */
static int add_span(struct trackspans *ts, const struct span *span)
{
	return span->track < SPANS_TRACKS ? spans_add(&ts->spans, span) : 0;
}

static struct trackspans_track *track_of(struct trackspans *ts, const struct viewtrack *track)
{
	return &ts->items.items[track->id];
}

static int name_track(void *state, const struct viewtrack *track)
{
	struct trackspans *ts = state;

	return vec_at(&ts->items, track->id, {}) ? 0 : -ENOMEM;
}

/* --- functions -------------------------------------------------------------------------------- */

/* Get the row of the function that begins with @frame. Return: 0 or -ENOMEM. */
static int find_row(struct trackspans *ts, uint32_t track, const struct open_frame *frame,
		    int32_t *ret_row)
{
	struct trackspans_track *to = &ts->items.items[track];

	/* Depths count from the first function of a part; those of what was moved do not. */
	*ret_row = to->open.n > 0 ? to->open.items[to->open.n - 1].row + 1 : frame->depth;
	if (track >= SPANS_TRACKS)
		return 0;
	if (to->open.n == 0 && (frame->how == PTD_CALL_BY_START || !to->has_part)) {
		to->has_part = true;
		if (spans_begin_part(&ts->spans, track) < 0)
			return -ENOMEM;
	}
	if (*ret_row < 0)
		spans_see_row(&ts->spans, track, *ret_row);
	return 0;
}

static int begin(void *state, const struct viewtrack *track, uint64_t t,
		 const struct open_frame *frame)
{
	struct trackspans *ts = state;
	struct trackspans_open open = { .frame = *frame, .t = t };

	/* What comes from another stack was not seen as a whole on this one. */
	open.frame.ambiguous |= t != frame->t;
	if (find_row(ts, track->id, frame, &open.row) < 0)
		return -ENOMEM;
	return vec_push(&track_of(ts, track)->open, open);
}

/* --- what threads noted ----------------------------------------------------------------------- */

/* Get the number of the name. Return: 0 or -ENOMEM. */
static int find_name(struct trackspans *ts, const struct ptd_symbol *symbol, uint32_t *ret_name)
{
	uint64_t name;
	const int r = map_number(&ts->names_by_symbol, (uintptr_t)symbol, ts->names.n, &name);

	*ret_name = (uint32_t)name;
	return r > 0 ? vec_push(&ts->names, symbol) : r;
}

static int add_noted(struct trackspans *ts, const struct viewtrack *track, uint64_t t,
		     const struct trackspans_open *open)
{
	return add_span(ts, &(struct span){ .t = open->t,
					    .duration = t - open->t,
					    .busy = t - open->t,
					    .n = 1,
					    .value = open->name,
					    .track = track->id,
					    .row = open->row,
					    .kind = SPAN_NOTED });
}

static int show_noted(void *state, const struct viewtrack *track, uint64_t t,
		      const struct ptd_symbol *symbol, bool begins)
{
	struct trackspans_track *to = track_of(state, track);
	struct trackspans_open open = { .t = t, .row = (int32_t)to->open.n };
	const int r = find_name(state, symbol, &open.name);

	if (r < 0)
		return r;
	return begins ? vec_push(&to->open, open) : add_noted(state, track, t, &open);
}

/* --- outliers --------------------------------------------------------------------------------- */

/* Return: whether @a is worse than @b; of equal ones, the one that began first. */
static bool is_worse(const struct outliers *outliers, const struct outlier *a,
		     const struct outlier *b)
{
	if (outliers->has_time && a->duration != b->duration)
		return a->duration > b->duration;
	return a->n_insns != b->n_insns ? a->n_insns > b->n_insns : a->t < b->t;
}

const struct outliers_function *outliers_of(const struct outliers *outliers, uint32_t function)
{
	static const struct outliers_function none = {};

	return function < outliers->functions.n ? &outliers->functions.items[function] : &none;
}

/* Return: whether outliers_add() would keep it. */
static bool outliers_wants(const struct outliers *outliers, uint32_t function,
			   const struct outlier *o)
{
	const struct outliers_function *f = outliers_of(outliers, function);

	return f->n < OUTLIERS_KEPT || is_worse(outliers, o, &f->slowest[OUTLIERS_KEPT - 1]);
}

/* An execution has ended. Return: 0 or -ENOMEM. */
static int outliers_add(struct outliers *outliers, uint32_t function, const struct outlier *o)
{
	struct outliers_function *f = vec_at(&outliers->functions, function, {});
	size_t i;

	if (!f)
		return -ENOMEM;
	i = f->n;
	while (i > 0 && is_worse(outliers, o, &f->slowest[i - 1]))
		i--;
	if (i == OUTLIERS_KEPT)
		return 0;
	f->n += f->n < OUTLIERS_KEPT;
	memmove(&f->slowest[i + 1], &f->slowest[i], (f->n - 1 - i) * sizeof(*f->slowest));
	f->slowest[i] = *o;
	return 0;
}

/* --- functions that end ----------------------------------------------------------------------- */

/* Return: whether the function is open on the track. */
static bool is_open(const struct trackspans_track *track, const struct ptd_function *function)
{
	for (size_t i = track->open.n; i-- > 0;)
		if (track->open.items[i].frame.function == function)
			return true;
	return false;
}

/* Keep the call if it is among the slowest of its function. Return: 0 or -ENOMEM. */
static int add_outlier(struct trackspans *ts, const struct viewtrack *track,
		       const struct trackspans_open *open, const struct ptd_call *leave)
{
	const uint32_t function = open->frame.function->id;
	const struct outlier outlier = { .t = open->t,
					 .duration = leave->t_total,
					 .n_insns = leave->n_insns_total,
					 .track = track->id };

	if (!profile_is_whole(&open->frame, leave) ||
	    !outliers_wants(&ts->outliers, function, &outlier) ||
	    is_open(track_of(ts, track), open->frame.function))
		return 0;
	return outliers_add(&ts->outliers, function, &outlier);
}

static int end_function(struct trackspans *ts, const struct viewtrack *track, uint64_t t,
			const struct ptd_call *leave)
{
	struct trackspans_track *from = track_of(ts, track);
	struct trackspans_open open;
	int r = 0;

	if (from->open.n == 0)
		return 0;
	open = from->open.items[--from->open.n];
	if (from->open.n == 0)
		vec_deinit(&from->open);
	if (!open.frame.function)
		return add_noted(ts, track, t, &open);
	if (leave)
		r = add_outlier(ts, track, &open, leave);
	if (r < 0)
		return r;
	return add_span(ts, &(struct span){ .t = open.t,
					    .duration = t - open.t,
					    .busy = t - open.t,
					    .n_insns = leave ? leave->n_insns_total : 0,
					    .n = 1,
					    .value = open.frame.function->id,
					    .track = track->id,
					    .row = open.row,
					    .kind = SPAN_FUNCTION });
}

/* --- gaps and points -------------------------------------------------------------------------- */

static int begin_gap(void *state, const struct viewtrack *track, uint64_t t,
		     const struct ptd_mark *mark)
{
	struct trackspans_track *to = track_of(state, track);

	to->gap = *mark;
	to->t_gap = t;
	to->has_gap = true;
	return 0;
}

static int end_gap(struct trackspans *ts, const struct viewtrack *track, uint64_t t)
{
	struct trackspans_track *to = track_of(ts, track);
	const bool is_gap = to->gap.kind == PTD_MARK_GAP;

	to->has_gap = false;
	return add_span(ts,
			&(struct span){ .t = to->t_gap,
					.duration = t - to->t_gap,
					.busy = t - to->t_gap,
					.n = 1,
					.value = to->gap.reason | (is_gap ? 0 : SPAN_OUT_OF_SCOPE),
					.track = track->id,
					.kind = SPAN_GAP });
}

static int end(void *state, const struct viewtrack *track, uint64_t t, const struct ptd_call *leave)
{
	struct trackspans *ts = state;

	return track_of(ts, track)->has_gap ? end_gap(ts, track, t)
					    : end_function(ts, track, t, leave);
}

static int add_point(struct trackspans *ts, const struct viewtrack *track, uint64_t t,
		     enum span_kind kind, uint32_t value)
{
	return add_span(
	    ts, &(struct span){
		    .t = t, .n = 1, .value = value, .track = track->id, .kind = (uint8_t)kind });
}

static int add_mark(void *state, const struct viewtrack *track, uint64_t t,
		    const struct ptd_mark *mark)
{
	return add_point(state, track, t, SPAN_MARK, mark->kind);
}

static int add_signal(void *state, const struct viewtrack *track,
		      const struct viewtrack_signal *signal)
{
	const uint32_t number = signal->signal < SPAN_FATAL ? signal->signal : SPAN_FATAL - 1;

	return add_point(state, track, signal->t, SPAN_SIGNAL,
			 number | (signal->is_fatal ? SPAN_FATAL : 0));
}

/* A thread leaves a CPU before another one comes. */
static int run(void *state, uint32_t cpu, uint64_t t, const struct viewtrack *track, bool is_in)
{
	struct trackspans *ts = state;

	if (is_in) {
		ts->t_in = t;
		return 0;
	}
	return add_span(ts, &(struct span){ .t = ts->t_in,
					    .duration = t - ts->t_in,
					    .busy = t - ts->t_in,
					    .n = 1,
					    .value = cpu,
					    .track = track->id,
					    .kind = SPAN_RUN });
}

static const struct viewtracks_ops ops = {
	.name = name_track,
	.begin = begin,
	.begin_gap = begin_gap,
	.end = end,
	.noted = show_noted,
	.mark = add_mark,
	.signal = add_signal,
	.run = run,
};

/* --- its life --------------------------------------------------------------------------------- */

void trackspans_init(struct trackspans *ts, enum ptd_clock clock)
{
	*ts = (struct trackspans){
		.tracks = { .ops = &ops, .state = ts, .clock = clock },
		.outliers = { .has_time = clock != PTD_CLOCK_NONE },
	};
}

void trackspans_deinit(struct trackspans *ts)
{
	vec_deinit_each(&ts->items, track, vec_deinit(&track->open));
	vec_deinit(&ts->names);
	map_deinit(&ts->names_by_symbol);
	vec_deinit(&ts->outliers.functions);
	spans_deinit(&ts->spans);
	viewtracks_deinit(&ts->tracks);
}
