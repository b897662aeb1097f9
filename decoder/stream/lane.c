/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/stream/lane.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/stream/sections.h"
#include "util/perf/tsc.h"

#define LANE_RUNS_MAX  (4 * ENGINE_STEP_RUNS_MAX)
#define LANE_MARKS_MAX 4096

/* A PSB+ has fewer packets that an engine stops for. */
#define JOINT_STEPS_MAX 64

/* How many stays are looked at for foreign processes that took turns. */
#define STAYS_MAX 64

static const struct stay nobody = { .pid = PTD_ID_UNKNOWN, .tid = PTD_ID_UNKNOWN, .comm = "" };

void lane_init_part(struct lane *lane, const struct lane_config *config)
{
	const struct trace_queue *queue = config->queue;

	*lane = (struct lane){
		.config = *config,
		.is_part = true,
		.stay_opens = true,
		.next_loss = queue->n_losses_at,
		/* Without PT, only the losses have a time. */
		.t = queue->n_spans == 0 && queue->n_losses > 0 ? queue->losses[0].time : 0,
	};

	lane->stats.cpu = queue->cpu;
}

int lane_init(struct lane *lane, const struct lane_config *config)
{
	lane_init_part(lane, config);
	for (size_t i = 0; i < config->queue->n_spans; i++)
		lane->stats.bytes_in += config->queue->spans[i].pt.size;
	lane->is_part = false;
	lane->n_runs_max = LANE_RUNS_MAX;
	lane->runs = malloc(LANE_RUNS_MAX * sizeof(*lane->runs));
	return lane->runs ? 0 : -ENOMEM;
}

void lane_deinit(struct lane *lane)
{
	lane->engine = engine_free(lane->engine);
	sections_deinit(&lane->sections);
	vec_deinit(&lane->marks);
	vec_deinit(&lane->new_runs);
	if (!lane->is_part)
		free(lane->runs);
	lane->runs = NULL;
}

/* Return: the span that the engine is in, or was in last. There must be one. */
static const struct trace_span *current_span(const struct lane *lane)
{
	return &lane->config.queue->spans[lane->next_span - 1];
}

/* Return: where the lane stands in its span. */
static uint64_t span_offset(const struct lane *lane)
{
	if (lane->next_span == 0)
		return 0;
	return lane->engine ? engine_offset(lane->engine) : current_span(lane)->pt.size;
}

uint64_t lane_offset(const struct lane *lane)
{
	return lane->span_base + span_offset(lane);
}

/* Return: whether the lane's time is on the clock of the sideband. */
static bool has_time(const struct lane *lane)
{
	return lane->config.trace->facts.clock.valid && lane->config.trace->facts.has_tsc;
}

/* Return: the time in the stream of a TSC. */
static uint64_t time_of(const struct lane *lane, uint64_t tsc)
{
	if (!lane->config.trace->facts.clock.valid || tsc == 0)
		return tsc;
	return tsc_to_ns(&lane->config.trace->facts.clock, tsc);
}

/* Widen the range of times in the stats. Damaged packets may state any time. */
static void note_time(struct lane *lane)
{
	if (!lane->stats.t_first || lane->t < lane->stats.t_first)
		lane->stats.t_first = lane->t;
	if (lane->t > lane->stats.t_last)
		lane->stats.t_last = lane->t;
}

static inline void set_time(struct lane *lane, uint64_t tsc)
{
	const uint64_t before = lane->t;

	/* A span begins without time: the last time still holds. */
	if (tsc == lane->tsc || tsc == 0)
		return;
	lane->tsc = tsc;
	lane->t = time_of(lane, tsc);
	lane->has_turned_back = lane->has_turned_back || lane->t < before;
	if (!lane->config.trace->facts.has_scope)
		note_time(lane);
}

/*
 * Return: whether @pid is certainly a process that the snapshot is not about. A process that is not
 * known may be one of those that it is about.
 */
static bool is_foreign_pid(const struct lane *lane, uint32_t pid)
{
	const struct trace_facts *facts = &lane->config.trace->facts;

	return facts->has_scope && pid != PTD_ID_UNKNOWN && !map_get(&facts->scope, pid);
}

/*
 * Return: whether two stays are one slice. A thread that left and came back may have run on another
 * CPU in between, so these are two slices.
 */
bool lane_is_same_slice(const struct stay *a, const struct stay *b)
{
	return a->pid == b->pid && a->tid == b->tid && a->space == b->space && a->start == b->start;
}

/* Return: whether the PT is older than the records that state who ran. */
static bool is_before_sideband(const struct lane *lane)
{
	return has_time(lane) && lane->t < lane->config.queue->sideband_since;
}

/*
 * Return: whether the recorder dropped what was mapped at @ip, or could not read it: nothing at all
 * is known of the process then, but for its name if the recorder says that it could not read some,
 * though the records of most other processes are complete. Of no process are later records dropped
 * than earlier ones.
 */
static bool is_dropped(const struct lane *lane, uint64_t ip)
{
	const struct stay *stay = &lane->stay;

	return has_time(lane) && lane->t < lane->config.trace->facts.dropped_until &&
	       !lane->is_guest && ip <= INT64_MAX && lane->has_stay && stay->pid != 0 &&
	       stay->pid != PTD_ID_UNKNOWN && stay->tid != PTD_ID_UNKNOWN &&
	       (!stay->comm[0] || lane->config.trace->facts.has_unread) &&
	       (!stay->space || space_n_own(stay->space, lane->t) == 0);
}

static void stay_at(const struct lane *lane, uint64_t time, struct stay *ret_stay)
{
	stays_at(lane->config.timeline, lane->config.queue, time, ret_stay);
}

/* Set @stay to that of the only thread that ever ran, if there was only one. */
static void find_only_stay(const struct lane *lane, struct stay *stay)
{
	struct stay last, before = { .tid = PTD_ID_UNKNOWN };

	stay_at(lane, UINT64_MAX, &last);
	if (lane->config.queue->cpu == TRACE_NONE) {
		/* Its name may have changed, and nothing else. */
		for (before = last; before.start && before.space == last.space;)
			stay_at(lane, before.start - 1, &before);
		if (before.space == last.space)
			before.tid = PTD_ID_UNKNOWN;
	} else if (last.start) {
		stay_at(lane, last.start - 1, &before);
	}
	if (before.tid == PTD_ID_UNKNOWN)
		*stay = last;
}

/* If the PT has no time, the records prove who ran only if one thread alone ever ran. */
static void only_stay(struct lane *lane, struct stay *stay)
{
	if (!lane->has_only_stay) {
		lane->only_stay = *stay;
		find_only_stay(lane, &lane->only_stay);
		lane->has_only_stay = true;
	}
	*stay = lane->only_stay;
}

/*
 * Find the thread whose code ran at some time between @from and @to, inclusive. If threads took
 * turns in that time, it is not known who ran, and only the kernel's code is known.
 */
static void stay_between(const struct lane *lane, uint64_t from, uint64_t to, bool is_user,
			 struct stay *ret_stay)
{
	const struct lane_config *c = &lane->config;

	if (lane->has_stay && lane->stay.start <= from && to < lane->stay.end) {
		*ret_stay = lane->stay;
	} else if (!stays_between(c->timeline, c->queue, from, to, is_user, ret_stay)) {
		*ret_stay = nobody;
		ret_stay->space = timeline_kernel(c->timeline);
	}
}

/* Return: whether only foreign processes ran between @from and @to, inclusive. */
static bool is_foreign_between(const struct lane *lane, uint64_t from, uint64_t to)
{
	struct stay stay;

	if (!lane->config.trace->facts.has_scope)
		return false;
	stay_at(lane, from, &stay);
	for (size_t n = 0; is_foreign_pid(lane, stay.pid) && n < STAYS_MAX; n++) {
		if (stay.end > to || stay.end == UINT64_MAX)
			return true;
		stay_at(lane, stay.end, &stay);
	}
	return false;
}

/* Return: the first TSC later than now whose time is not before @time. */
static uint64_t tsc_at(struct lane *lane, uint64_t time)
{
	uint64_t low = lane->tsc, step = 1;

	if (time == lane->limit && low < lane->limit_tsc)
		return lane->limit_tsc;
	while (step < UINT64_C(1) << 56 && low + step > low && time_of(lane, low + step) < time) {
		low += step;
		step *= 2;
	}
	for (; step > 0; step /= 2)
		if (low + step > low && time_of(lane, low + step) < time)
			low += step;
	lane->limit = time;
	lane->limit_tsc = low + 1;
	return lane->limit_tsc;
}

/* Tell the engine until when that holds which was found out about one moment, now. */
static void set_limit(struct lane *lane)
{
	uint64_t until = lane->stay.end;

	if (lane->tsc == 0 || !lane->stay.space || time_of(lane, lane->tsc) != lane->t)
		return;
	if (space_next_change(lane->stay.space, lane->t) < until)
		until = space_next_change(lane->stay.space, lane->t);
	if (until > lane->t)
		engine_set_limit(lane->engine, tsc_at(lane, until));
}

/*
 * Find out who runs now, and tell the engine where the code is. A change of thread ends the slice.
 */
static int find_who_runs(struct lane *lane, const struct engine_step *step)
{
	const bool is_bare = lane->config.trace->facts.is_bare;
	const bool is_timeless = !is_bare && !has_time(lane);
	struct stay stay = nobody; /* which holds no longer than the time does */
	uint64_t time = UINT64_MAX, until = UINT64_MAX;
	int r;

	lane->is_foreign = false;
	if (is_timeless) {
		only_stay(lane, &stay);
		lane->is_foreign = is_foreign_pid(lane, stay.pid);
		stay.end = 0;
	} else if (is_bare) {
		stay_at(lane, 0, &stay);
	} else if (!is_before_sideband(lane)) {
		const uint64_t from = step->t_from ? time_of(lane, step->t_from) : lane->t;

		if (step->t_to < UINT64_MAX)
			until = step->t_to ? time_of(lane, step->t_to) : from;
		/* Time counted in cycles may be ahead of what is told next, or broken packets tell
		 * any. */
		stay_between(lane, from < until ? from : until, from < until ? until : from,
			     step->is_user, &stay);
		lane->is_foreign = is_foreign_between(lane, from < until ? from : until,
						      from < until ? until : from);
		/* The last packet of time may be from before the thread came. */
		if (lane->t < stay.start)
			lane->t = stay.start;
		/* What was mapped is as of the time that is said of the code; if that did not
		 * change until it ran. */
		time = lane->t;
		until = until > time ? until : time;
	}

	/* Of foreign processes, only the kernel's code is shown. */
	if (lane->is_foreign)
		stay.space = timeline_kernel(lane->config.timeline);
	if (!lane->has_stay)
		lane->first_stay = stay;
	if (!lane->has_stay || !lane_is_same_slice(&lane->stay, &stay)) {
		lane->stay_opens = true;
		engine_change_thread(lane->engine);
	}
	lane->stay = stay;
	lane->has_stay = true;
	if (lane->is_guest || !stay.space)
		return engine_set_space(lane->engine, NULL, 0, 0);
	/* Without time, code that was replaced at any time may have run. */
	r = engine_set_space(lane->engine, stay.space, space_generation(stay.space, time),
			     is_timeless ? 0 : space_generation(stay.space, until));
	if (r == 0 && is_bare)
		engine_set_limit(lane->engine, UINT64_MAX);
	else if (r == 0 && time == until && time == lane->t)
		set_limit(lane);
	return r;
}

/* Begin the slice of what comes next. */
static void open_slice(struct lane *lane)
{
	const struct stay *stay = lane->has_stay ? &lane->stay : &nobody;

	lane->slice = (struct ptd_slice){
		.cpu = lane->config.queue->cpu,
		.pid = stay->pid,
		.tid = stay->tid,
		.space = stay->space ? space_id(stay->space) : 0,
		/* Damaged packets may state any time, but slices are in order. */
		.t0 = lane->t > lane->slice.t0 ? lane->t : lane->slice.t0,
		.comm = stay->comm,
	};
	lane->new_slice = true;
	lane->stay_opens = false;
	lane->n_opened++;
}

/* Return: whether @mark, a gap, begins where the last gap ended; then the last gap was extended. */
static bool extend_gap(struct lane *lane, const struct ptd_mark *mark)
{
	struct ptd_mark *last = lane->marks.n > 0 ? &lane->marks.items[lane->marks.n - 1] : NULL;

	if (!last || last->kind != PTD_MARK_GAP || last->run != mark->run ||
	    last->reason != mark->reason || last->offset + last->n_bytes != mark->offset)
		return false;
	last->n_bytes += mark->n_bytes;
	return true;
}

/*
 * Return: whether a gap of this kind is only there because the snapshot has no code of foreign
 * processes.
 */
static bool is_out_of_scope(const struct lane *lane, enum ptd_gap_reason reason)
{
	if (!lane->is_foreign)
		return false;
	switch (reason) {
	case PTD_GAP_NO_CODE:
	case PTD_GAP_NO_OBJECT:
	case PTD_GAP_WRONG_OBJECT:
	case PTD_GAP_BAD_FLOW:
	case PTD_GAP_NO_PROGRESS:
	case PTD_GAP_UNKNOWN_INSN:
		return true;
	default:
		return false;
	}
}

/*
 * Leave out a gap in which nothing is lost. If the kernel's code is known, the thread has
 * instructions before and after it, and a mark must stand between them.
 */
static int leave_out_gap(struct lane *lane, const struct ptd_mark *gap, uint64_t n_bytes)
{
	const struct ptd_mark *last =
	    lane->marks.n > 0 ? &lane->marks.items[lane->marks.n - 1] : NULL;
	struct ptd_mark mark = *gap;

	lane->stats.bytes_out_of_scope += n_bytes;
	if (!timeline_kernel(lane->config.timeline) ||
	    (last && last->kind == PTD_MARK_OUT_OF_SCOPE && last->run == mark.run))
		return 0;
	mark.kind = PTD_MARK_OUT_OF_SCOPE;
	return vec_push(&lane->marks, mark);
}

/* Return: why there is no code at @ip. */
static enum ptd_gap_reason why_no_code(struct lane *lane, uint64_t ip)
{
	if (!lane->is_guest && timeline_lacks_kernel(lane->config.timeline, ip)) {
		lane->lacks_kernel = true;
		return PTD_GAP_NO_OBJECT;
	}
	if (is_before_sideband(lane))
		return PTD_GAP_BEFORE_SIDEBAND;
	if (!lane->config.trace->facts.is_bare &&
	    (!lane->has_stay || lane->stay.tid == PTD_ID_UNKNOWN))
		return PTD_GAP_THREAD_UNKNOWN;
	return is_dropped(lane, ip) ? PTD_GAP_RECORDS_DROPPED : PTD_GAP_NO_CODE;
}

static int add_mark(struct lane *lane, enum ptd_mark_kind kind, const struct engine_step *step)
{
	struct ptd_mark mark = {
		.run = lane->n_runs,
		.kind = kind,
		.t = lane->t,
		.ip = step->ip,
		.value = step->value,
		.extra = step->extra,
	};

	if (kind == PTD_MARK_GAP) {
		mark.reason = step->reason;
		if (is_out_of_scope(lane, step->reason))
			return leave_out_gap(lane, &mark, step->n_bytes);
		if (mark.reason == PTD_GAP_NO_CODE)
			mark.reason = why_no_code(lane, step->ip);
		mark.offset = lane->span_base + step->offset;
		mark.n_bytes = step->n_bytes;
		lane->stats.bytes_lost += mark.n_bytes;
		lane->gap_bytes[mark.reason] += mark.n_bytes;
		if (extend_gap(lane, &mark))
			return 0;
		lane->stats.n_gaps++;
		lane->n_gaps[mark.reason]++;
	}
	return vec_push(&lane->marks, mark);
}

/* Losses, which become gaps. */

/* Put a gap that the recorder states before run @run of the batch. */
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

/*
 * Put gaps before run @run of the batch: those of the losses whose place is not known, up to the
 * lane's time, or all of them if the lane has ended.
 */
static int put_losses(struct lane *lane, size_t run)
{
	const struct trace_queue *queue = lane->config.queue;
	const bool timed = has_time(lane);
	int r = 0;

	while (r == 0 && lane->next_loss < queue->n_losses) {
		const struct trace_loss *loss = &queue->losses[lane->next_loss];

		if (timed && loss->time > lane->t && !lane->ended)
			return 0;
		lane->next_loss++;
		r = add_loss(lane, loss->reason, timed && loss->time ? loss->time : lane->t, run,
			     span_offset(lane));
	}
	return r;
}

/*
 * Put gaps before run @run: those of the losses up to @offset of a span that begins at @start of
 * the stream.
 */
static int put_losses_at(struct lane *lane, uint64_t start, uint64_t offset, size_t run)
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

/*
 * Put gaps before run @run: those of the losses up to where the engine stands. Let the engine pause
 * where the next one is. (Losses at the end of a span are put behind it.)
 */
static int put_losses_in_span(struct lane *lane, size_t run)
{
	const struct trace_queue *queue = lane->config.queue;
	const struct trace_span *span = current_span(lane);
	const uint64_t offset = span_offset(lane);
	int r;

	if (lane->next_loss_at == queue->n_losses_at || span->pt.size == 0)
		return 0;
	r = put_losses_at(lane, span->offset, offset < span->pt.size ? offset : span->pt.size - 1,
			  run);
	if (r == 0 && lane->next_loss_at < queue->n_losses_at)
		engine_pause_at(lane->engine,
				queue->losses[lane->next_loss_at].offset - span->offset);
	return r;
}

/* Put a gap for the bytes that are missing before @span, the next one. */
static int put_hole(struct lane *lane, const struct trace_span *span)
{
	const size_t n_before = lane->marks.n;
	bool missing = false;
	int r;

	if (lane->next_span > 0) {
		lane->span_base += span[-1].pt.size;
		lane->stay_opens = true;
		missing = !lane->config.trace->facts.snapshot_mode &&
			  span->offset != span[-1].offset + span[-1].pt.size;
	}
	r = put_losses_at(lane, span->offset, 0, lane->n_runs);
	if (r == 0 && lane->config.queue->overwritten && lane->config.trace->facts.snapshot_mode &&
	    span->offset > 0)
		r = add_loss(lane, PTD_GAP_OVERWRITTEN, lane->t, lane->n_runs, 0);
	if (r == 0 && lane->next_span > 0 && (missing || lane->marks.n == n_before))
		r = add_loss(lane, PTD_GAP_LOST, lane->t, lane->n_runs, 0);
	return r;
}

/* The queue is over: put gaps for the losses that are left. */
static int put_losses_at_end(struct lane *lane)
{
	const uint64_t start = lane->next_span > 0 ? current_span(lane)->offset : 0;
	int r;

	lane->ended = true;
	r = put_losses_at(lane, start, span_offset(lane), lane->n_runs);
	return r < 0 ? r : put_losses(lane, lane->n_runs);
}

/* Spans, and where they are cut. */

/* Let the engine join at the next cut. */
static void set_cut(struct lane *lane, uint64_t cut)
{
	lane->cut = cut;
	engine_join_at(lane->engine, cut);
}

/* Find the sections of the span in which the engine begins, and its first cut. */
static void start_cuts(struct lane *lane)
{
	const struct lane_config *c = &lane->config;
	const bool can_join = engine_can_join(c->engine) && c->queue->n_losses == 0;
	const struct sections_config config = { .trace = c->trace,
						.queue = c->queue,
						.timeline = c->timeline,
						.extract = c->extract,
						.cut_size = can_join ? c->cut_size : 0 };

	sections_deinit(&lane->sections);
	sections_init(&lane->sections, &config, lane->next_span - 1);
	set_cut(lane, sections_next_cut(&lane->sections, 0));
}

/* An engine that went on behind an error may have passed cuts. */
static void pass_cuts(struct lane *lane)
{
	uint64_t cut = lane->cut;

	while (cut < current_span(lane)->pt.size && cut < engine_offset(lane->engine))
		cut = sections_next_cut(&lane->sections, cut);
	if (cut != lane->cut)
		set_cut(lane, cut);
}

static int join(struct lane *lane, const struct engine_step *step)
{
	lane->at_joint = true;
	lane->joint = step->offset;
	lane->limit = lane->limit_tsc = 0;
	if (!lane->is_part)
		set_cut(lane, sections_next_cut(&lane->sections, step->offset));
	return 0;
}

/* Spans. */

static int start_span(struct lane *lane)
{
	const struct trace_span *span = &lane->config.queue->spans[lane->next_span];
	struct engine_config config = lane->config.engine_config;
	const struct engine_step empty = { .reason = PTD_GAP_EMPTY };
	int r;

	r = put_hole(lane, span);
	if (r < 0)
		return r;
	lane->next_span++;
	lane->span_decoded = 0;
	lane->is_guest = false;
	if (span->pt.size == 0)
		return add_mark(lane, PTD_MARK_GAP, &empty);

	config.pt = span->pt;
	r = engine_new(lane->config.engine, &config, &lane->engine);
	if (r < 0)
		return r;
	start_cuts(lane);
	r = lane_pass_over(lane);
	return r < 0 || lane->ended ? r : put_losses_in_span(lane, lane->n_runs);
}

static void count_decoded(struct lane *lane)
{
	const uint64_t decoded = engine_decoded(lane->engine);

	lane->stats.bytes_decoded += decoded - lane->span_decoded;
	lane->span_decoded = decoded;
}

void lane_leave_out(struct lane *lane)
{
	struct ptd_cpu_stats *stats = &lane->stats;

	if (lane->engine)
		count_decoded(lane);
	lane->engine = engine_free(lane->engine);
	stats->bytes_out_of_scope = stats->bytes_in - stats->bytes_decoded - stats->bytes_lost;
	lane->ended = true;
}

static void discount_run(struct lane *lane, const struct ptd_run *run)
{
	lane->stats.n_insns -= run->n;
	lane->n_insns_early -= run->early ? run->n : 0;
}

/* Return: whether packets state the address of the run after this one. */
static bool is_address_in_packets(const struct ptd_run *run)
{
	switch (run->block->insns[run->first + run->n - 1].iclass) {
	case PTD_INSN_JUMP_INDIRECT:
	case PTD_INSN_CALL_INDIRECT:
		return true;
	default:
		return false;
	}
}

/*
 * Packets and code contradict each other. All runs after the last address in the packets follow
 * from the code alone. If some of that code is of a JIT compiler, which may have changed it without
 * noting it, remove those runs, as far as they are still in the batch.
 */
static void remove_contradicted(struct lane *lane, enum ptd_gap_reason reason)
{
	const size_t first = lane->marks.n > 0 ? lane->marks.items[lane->marks.n - 1].run : 0;
	size_t from = lane->n_runs;
	bool is_memory = false;

	/* After the last branch there was no address in the packets, whatever branch it is. */
	while (from > first && (!is_address_in_packets(&lane->runs[from - 1]) ||
				(from == lane->n_runs && reason != PTD_GAP_NO_CODE))) {
		from--;
		is_memory = is_memory || lane->runs[from].block->object->name[0] == '[';
	}
	if (!is_memory)
		return;
	for (size_t i = from; i < lane->n_runs; i++)
		discount_run(lane, &lane->runs[i]);
	lane->n_runs = from;
	while (lane->new_runs.n > 0 && lane->new_runs.items[lane->new_runs.n - 1] >= from)
		lane->new_runs.n--;
}

/* Run @run of the batch begins at another time than the one before it, or is a step's first. */
static inline int take_moment(struct lane *lane, size_t run)
{
	set_time(lane, lane->runs[run].t);
	if (lane->config.trace->facts.has_scope && !lane->is_foreign)
		note_time(lane);
	return lane->next_loss < lane->config.queue->n_losses ? put_losses(lane, run) : 0;
}

/* Give the runs from @from on before @to their time. What depends on time alone is not looked at
 * for each run. */
static int take_runs(struct lane *lane, size_t from, size_t to)
{
	uint64_t n_insns = 0, n_early = 0, tsc = ~lane->runs[from].t, t = 0;

	for (struct ptd_run *run = &lane->runs[from]; run < &lane->runs[to]; run++) {
		if (run->t != tsc) {
			const int r = take_moment(lane, (size_t)(run - lane->runs));

			if (r < 0)
				return r;
			tsc = run->t;
			t = lane->t;
		}
		run->t = t;
		n_insns += run->n;
		if (run->early)
			n_early += run->n;
	}
	lane->stats.n_insns += n_insns;
	lane->n_insns_early += n_early;
	lane->n_runs = to;
	return 0;
}

/* Note which runs of the engine's step, which come next in the batch, are of new blocks. Return: 0
 * or -ENOMEM. */
static int note_new_runs(struct lane *lane)
{
	size_t n;
	const uint32_t *new_runs = engine_new_runs(lane->engine, &n);
	int r;

	if (n == 0)
		return 0;
	r = vec_reserve(&lane->new_runs, n);
	for (size_t i = 0; i < n && r == 0; i++)
		lane->new_runs.items[lane->new_runs.n++] = (uint32_t)lane->n_runs + new_runs[i];
	return r;
}

/* Put the result of one step of the engine into the batch. Return: 0, or negative errno. */
static int take_step(struct lane *lane, const struct engine_step *step)
{
	/* An error passes the offset to pause at, too. */
	const bool passed = step->passed || step->stop == ENGINE_GAP || step->stop == ENGINE_END;
	const size_t n_before = step->passed ? step->n_before : step->n_runs;
	const size_t end = lane->n_runs + step->n_runs;
	int r;

	r = take_runs(lane, lane->n_runs, lane->n_runs + n_before);
	if (r == 0 && passed && n_before < step->n_runs)
		r = put_losses_in_span(lane, lane->n_runs);
	if (r == 0)
		r = take_runs(lane, lane->n_runs, end);
	if (r < 0)
		return r;
	set_time(lane, step->t);
	r = put_losses(lane, lane->n_runs);
	if (r == 0 && passed && n_before == step->n_runs)
		r = put_losses_in_span(lane, lane->n_runs);
	if (r < 0)
		return r;

	switch (step->stop) {
	case ENGINE_FULL:
		return 0;
	case ENGINE_ASK:
		return find_who_runs(lane, step);
	case ENGINE_MARK:
		r = add_mark(lane, step->mark, step);
		/* For a bare PT stream the user states which code is where, a guest's too. */
		if (step->mark == PTD_MARK_PAGING && !lane->config.trace->facts.is_bare)
			lane->is_guest = step->extra != 0;
		return r;
	case ENGINE_GAP:
		if (step->reason == PTD_GAP_BAD_FLOW || step->reason == PTD_GAP_NO_CODE ||
		    step->reason == PTD_GAP_UNKNOWN_INSN)
			remove_contradicted(lane, step->reason);
		count_decoded(lane);
		return add_mark(lane, PTD_MARK_GAP, step);
	case ENGINE_JOIN:
		count_decoded(lane);
		return join(lane, step);
	case ENGINE_END:
		count_decoded(lane);
		lane->engine = engine_free(lane->engine);
		lane->ended = lane->is_part;
		return 0;
	}
	return -EINVAL;
}

int lane_fill(struct lane *lane)
{
	struct engine_step step;
	int r;

	/* A slice that was opened right before a joint has nothing in it yet. */
	lane->new_slice = lane->new_slice && lane->at_joint && !lane_ready(lane);
	lane->at_joint = false;
	lane->n_runs = 0;
	lane->marks.n = lane->new_runs.n = 0;

	while (!lane->ended && !lane->at_joint) {
		if (lane_ready(lane) && (lane->stay_opens || lane->marks.n >= LANE_MARKS_MAX ||
					 lane->n_runs + ENGINE_STEP_RUNS_MAX > lane->n_runs_max))
			return 0;
		if (lane->stay_opens)
			open_slice(lane);

		if (!lane->engine) {
			r = lane->next_span == lane->config.queue->n_spans ? put_losses_at_end(lane)
									   : start_span(lane);
		} else {
			r = engine_next(lane->engine, lane->runs + lane->n_runs,
					lane->n_runs_max - lane->n_runs, &step);
			if (r == 0)
				r = note_new_runs(lane);
			if (r == 0)
				r = take_step(lane, &step);
			if (r == 0 && lane->engine && !lane->is_part)
				pass_cuts(lane);
		}
		if (r < 0)
			return r;
	}
	return 0;
}

/* Parts. */

void lane_get_joint(const struct lane *lane, struct lane_joint *ret_joint)
{
	memset(ret_joint, 0, sizeof(*ret_joint));
	engine_get_joint(lane->engine, &ret_joint->engine);
	ret_joint->t = lane->t;
	ret_joint->tsc = lane->tsc;
	ret_joint->is_guest = lane->is_guest;
}

/* Go on to the joint at @from. What lies before it is not known, and nothing of it is shown. */
static int go_to_joint(struct lane *lane, uint64_t from)
{
	struct engine_step step;
	int r;

	for (size_t n_steps = 0;; n_steps++) {
		r = engine_next(lane->engine, lane->runs, lane->n_runs_max, &step);
		if (r < 0)
			return r;
		/* Behind a gap, the engine is not at @from any more. */
		if (step.n_runs > 0 || step.stop == ENGINE_END || step.stop == ENGINE_GAP ||
		    n_steps == JOINT_STEPS_MAX)
			return 1;
		if (step.stop == ENGINE_MARK && step.mark == PTD_MARK_PAGING &&
		    !lane->config.trace->facts.is_bare)
			lane->is_guest = step.extra != 0;
		if (step.stop == ENGINE_JOIN)
			break;
	}
	set_time(lane, step.t);
	lane->span_decoded = engine_decoded(lane->engine);
	return step.offset == from ? 0 : 1;
}

/* Go on at the cut @cut, if the lane can begin there. Return: 0, or negative errno. */
static int seek(struct lane *lane, uint64_t cut)
{
	struct engine_config config = lane->config.engine_config;
	const uint64_t offset = engine_offset(lane->engine);
	_cleanup_(engine_freep) struct engine *before = TAKE(lane->engine);
	const bool was_guest = lane->is_guest;
	int r;

	config.pt = current_span(lane)->pt;
	config.from = cut;
	r = engine_new(lane->config.engine, &config, &lane->engine);
	if (r == 0)
		r = go_to_joint(lane, cut);
	if (r > 0) {
		engine_free(lane->engine);
		lane->engine = TAKE(before);
		lane->is_guest = was_guest;
		return 0;
	}
	if (r < 0)
		return r;
	lane->stats.bytes_out_of_scope += engine_offset(lane->engine) - offset;
	lane->limit = lane->limit_tsc = 0;
	/* Threads that are known may have run in between, so this is another slice. */
	if (lane->stay.tid == PTD_ID_UNKNOWN)
		lane->has_stay = false;
	lane->at_joint = true;
	lane->joint = cut;
	set_cut(lane, sections_next_cut(&lane->sections, cut));
	return 0;
}

int lane_pass_over(struct lane *lane)
{
	const uint64_t at = lane->at_joint ? lane->joint : 0;
	const struct stay *slice = lane->has_stay && !lane->stay_opens ? &lane->stay : NULL;
	uint64_t needed;

	if (!lane->engine)
		return 0;
	needed = sections_needed(&lane->sections, at, slice);
	if (psbs_error(&lane->sections.psbs) < 0)
		return psbs_error(&lane->sections.psbs);
	if (needed == lane->sections.size)
		lane_leave_out(lane);
	return needed > at && !lane->ended ? seek(lane, needed) : 0;
}

int lane_start_part(struct lane *lane, size_t span, uint64_t from, uint64_t to,
		    struct lane_joint *ret_joint)
{
	struct engine_config config = lane->config.engine_config;
	int r;

	lane->stay_opens = false;
	for (size_t i = 0; i < span; i++)
		lane->span_base += lane->config.queue->spans[i].pt.size;
	lane->next_span = span + 1;
	config.pt = current_span(lane)->pt;
	config.from = from;
	r = engine_new(lane->config.engine, &config, &lane->engine);
	if (r == 0)
		r = go_to_joint(lane, from);
	if (r != 0)
		return r;
	lane_get_joint(lane, ret_joint);
	set_cut(lane, to);
	return 0;
}

void lane_take_part(struct lane *lane, struct lane *part)
{
	struct ptd_cpu_stats *to = &lane->stats;
	const struct ptd_cpu_stats *from = &part->stats;

	to->bytes_decoded += from->bytes_decoded;
	to->bytes_out_of_scope += from->bytes_out_of_scope;
	if (from->t_first && (!to->t_first || from->t_first < to->t_first))
		to->t_first = from->t_first;
	if (from->t_last > to->t_last)
		to->t_last = from->t_last;

	(void)engine_free(lane->engine);
	lane->engine = TAKE(part->engine);
	engine_move(lane->engine, &lane->config.engine_config);
	lane->span_decoded = part->span_decoded;
	lane->stay = part->stay;
	lane->has_stay = part->has_stay;
	lane->stay_opens = part->stay_opens;
	lane->is_guest = part->is_guest;
	lane->is_foreign = part->is_foreign;
	lane->t = part->t;
	lane->tsc = part->tsc;
	lane->at_joint = true;
	lane->joint = part->joint;
	set_cut(lane, sections_next_cut(&lane->sections, part->joint));
}
