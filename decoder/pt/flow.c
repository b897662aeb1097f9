/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Engine flow, over our own walk (walk.h). It stands at an address and follows the code from there,
 * segment by segment (view.h). The packet that says where a segment leads must be there before the
 * segment is given out.
 *
 * Nearly always that packet is a bit of a TNT, or a TIP, and the next segment is linked already.
 * run_hot() handles this case and no other. do_step() could do everything, one step at a time:
 * events, changes of time, errors, and segments that no packet decides.
 *
 * An event has a place in the code (place.h). The engine follows the code to that place, which
 * takes no packet, and then delivers the event. If the code does not lead there, packets and code
 * contradict each other.
 *
 * Behind an error the engine goes on at the next packet that says where execution is; the bytes
 * before it are a gap.
 */

#include "decoder/pt/engine_base.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "decoder/pt/errata.h"
#include "decoder/pt/place.h"
#include "decoder/pt/retstack.h"

/* How much of the PT an engine reads at once that begins in its midst: it may not go far. */
#define FROM_WINDOW ((size_t)1 << 14)

/* Erratum BDM64: so many instructions are looked at. */
#define BDM64_INSNS_MAX 256

/* What a step came to. */
enum result {
	RESULT_ON,   /* nothing that the caller must see */
	RESULT_STOP, /* the step is filled in */
	RESULT_FAIL, /* packets and code do not go on: see flow->failure */
};

/* Bits of the TNT that was taken last, for branches that are still to come. */
struct tnt {
	uint64_t bits; /* the oldest is the highest */
	unsigned n;
};

struct flow {
	struct engine base;
	struct walk walk;
	struct when when;

	bool enabled; /* packets are on, execution is at: */
	uint64_t ip;
	bool is_done; /* the instruction there was given out, but not yet where it leads */
	struct {
		struct seg seg; /* of it alone */
		struct ptd_block block;
		struct ptd_run run;
		struct seg_call call;
	} done;
	bool is_behind_branch; /* a branch led there */
	bool has_mode;         /* packets said what it is since the last gap */

	struct tnt tnt;
	struct retstack calls; /* those whose returns may be compressed */
	uint64_t epoch;        /* of the view whose segments' calls these are, */
	struct seg *latest;    /* and whose segment was found last: often it is asked for again */
	unsigned n_unlinked; /* branches that led to none of the segments that they are linked to */

	bool has_event; /* taken, but its place was not reached yet */
	struct walk_event event;
	bool is_told; /* why the interruption happened */

	/* Packets and code do not go on. */
	bool has_failed;
	struct failure {
		enum ptd_gap_reason reason;
		uint64_t ip;
		bool is_end; /* it is only that they are over */
	} failure;
};

/* Return: whether the next branch is taken. */
static inline bool tnt_pop(struct tnt *tnt)
{
	const bool is_taken = tnt->bits >> 63;

	tnt->bits <<= 1;
	tnt->n--;
	return is_taken;
}

/* The TSC as far as packets were read; 0: they do not say. */
static uint64_t now(const struct flow *f)
{
	return f->walk.tsc.has_tsc ? f->walk.tsc.now : 0;
}

/*
 * Segments
 */

/* Before the next run_hot() the view may be another one, so what it pushes goes with no segment. */
static inline void push_calls(struct flow *f, const struct seg *s)
{
	for (size_t i = 0; i < s->n_calls; i++)
		retstack_push(&f->calls, s->calls[i].ret, NULL);
}

static inline void push_hot_calls(struct flow *f, const struct seg *s)
{
	for (size_t i = 0; i < s->n_calls; i++)
		retstack_push(&f->calls, s->calls[i].ret, &s->calls[i]);
}

/* Find the segment where execution is. */
static int find_seg(struct flow *f, uint64_t ip, struct seg **ret_seg)
{
	static struct seg nowhere = { .kind = SEG_NOWHERE, .reason = PTD_GAP_NO_CODE };
	const struct seg *latest = f->latest;

	if (!f->base.view) {
		*ret_seg = &nowhere;
		return 0;
	}
	if (latest && f->epoch == view_epoch(f->base.view) && latest->ip == ip &&
	    latest->mode == f->base.mode && latest->kind != SEG_GONE) {
		*ret_seg = f->latest;
		return 0;
	}
	return view_find(f->base.view, ip, f->base.mode, ret_seg);
}

/* Find the segment of what comes next, or of the instruction that was given out already. */
static int find_current_seg(struct flow *f, struct seg **ret_seg)
{
	if (!f->is_done)
		return find_seg(f, f->ip, ret_seg);
	*ret_seg = &f->done.seg;
	return 0;
}

/* The branch that @s ends with is taken or not. Return: the segment behind it; NULL if there is no
 * memory. */
static struct seg *link_cond(struct flow *f, struct seg *s, bool is_taken)
{
	struct seg *next;

	if (view_find(f->base.view, s->to_ip[is_taken], f->base.mode, &next) < 0)
		return NULL;
	seg_set_link(&s->to[is_taken], next);
	return next;
}

/* One of so many branches that led elsewhere than they are linked to is linked anew. */
#define N_UNLINKED 16

/* The way behind @s leads to @ip, which it is not linked to. Return: as link_to(). */
static struct seg *link_anew(struct flow *f, struct seg *s, uint64_t ip)
{
	struct seg *next;

	if (view_find(f->base.view, ip, f->base.mode, &next) < 0)
		return NULL;
	if (!seg_link(&s->to[0]))
		seg_set_link(&s->to[0], next);
	else if (!seg_link(&s->to[1]))
		seg_set_link(&s->to[1], next);
	else if (f->n_unlinked++ % N_UNLINKED == 0)
		seg_set_link(&s->to[f->n_unlinked / N_UNLINKED % 2], next);
	return next;
}

/*
 * The way behind @s leads to @ip. Many branches lead to many places in turn: if the links were set
 * each time, the memory of the segment would go to and fro between the CPUs of threads that share
 * it, at each of these branches.
 *
 * Return: the segment there; NULL if there is no memory.
 */
static inline struct seg *link_to(struct flow *f, struct seg *s, uint64_t ip)
{
	struct seg *next = seg_link(&s->to[0]);

	if (next && next->ip == ip)
		return next;
	next = seg_link(&s->to[1]);
	return next && next->ip == ip ? next : link_anew(f, s, ip);
}

/* The return at the end of @s leads to @ip, behind @call. Return: the segment there; NULL if there
 * is no memory. */
static inline struct seg *link_back(struct flow *f, const struct seg *s, uint64_t ip,
				    struct seg_call *call)
{
	struct seg *next = seg_link(&call->back);

	if (next && next->mode == s->mode)
		return next;
	if (view_find(f->base.view, ip, f->base.mode, &next) < 0)
		return NULL;
	seg_set_link(&call->back, next);
	return next;
}

/* @gone does not hold any more, but what leads there still does. Return: the segment that holds in
 * its place; NULL if there is no memory. */
static struct seg *link_gone(struct flow *f, struct seg *gone)
{
	struct seg *next = seg_link(&gone->to[0]);

	if (next)
		return next;
	if (view_find(f->base.view, gone->ip, f->base.mode, &next) < 0)
		return NULL;
	seg_set_link(&gone->to[0], next);
	return next;
}

/* Does the time that was read hold without asking whose code it is of? It is that of the next
 * packet. */
static bool is_in_limit(const struct flow *f)
{
	return now(f) <= f->base.t || now(f) < f->base.limit;
}

/* Packets of time are before the next one. Return: whether that is @wanted, and nothing else is to
 * be seen to. */
static bool is_next(struct flow *f, enum walk_next wanted)
{
	return walk_ahead(&f->walk) == wanted && f->walk.n_notes == 0 &&
	       f->walk.offset < f->base.pause && is_in_limit(f);
}

static inline uint64_t later_of(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* The next packet is no TNT that can be taken by its byte alone. Return: its bits if it is one. */
static struct tnt take_slow_tnt(struct flow *f)
{
	struct tnt tnt = {};

	walk_pass_time(&f->walk);
	if (is_in_limit(f) && (walk_quick_tnt(&f->walk, &tnt.bits, &tnt.n) ||
			       walk_quick_long_tnt(&f->walk, &tnt.bits, &tnt.n)))
		return tnt;
	if (is_next(f, WALK_TNT))
		tnt.n = walk_take_tnt(&f->walk, &tnt.bits);
	return tnt;
}

/* The same of a TIP. Return: whether it is one, to walk.last_ip. */
static bool take_slow_tip(struct flow *f)
{
	uint64_t ip;

	walk_pass_time(&f->walk);
	if (is_in_limit(f) && walk_quick_tip(&f->walk, &ip))
		return true;
	return is_next(f, WALK_TIP) && f->walk.packet.ip_bytes && walk_take_tip(&f->walk, &ip);
}

/* Can run_hot() go on from here? */
static bool is_hot(const struct flow *f)
{
	return f->base.view && f->enabled && !f->is_done && !f->has_event && !f->has_failed &&
	       !f->base.passed && f->walk.n_notes == 0 && is_in_limit(f);
}

/* What run_hot() keeps in registers. */
struct hot {
	struct tnt tnt;
	uint64_t t, next_t; /* of the segment, and of the one behind it */
};

/* Return: whether there is a bit of a TNT for the next branch. */
static inline bool has_bit(struct flow *f, struct hot *h)
{
	if (h->tnt.n > 0 || walk_quick_tnt(&f->walk, &h->tnt.bits, &h->tnt.n))
		return true;
	h->tnt = take_slow_tnt(f);
	h->next_t = later_of(now(f), h->t);
	return h->tnt.n > 0;
}

/* Packets of time come next, or a rare one. Return: whether a TIP is behind them; if not, and if a
 * TNT may stand for it, h->tnt has its bits. */
static bool take_slow_target(struct flow *f, struct hot *h, bool returns, uint64_t *ret_ip)
{
	bool is_tip;

	walk_pass_time(&f->walk);
	is_tip = is_in_limit(f) && walk_quick_tip(&f->walk, ret_ip);
	if (!is_tip && returns)
		h->tnt = take_slow_tnt(f);
	if (!is_tip && h->tnt.n == 0) {
		is_tip = take_slow_tip(f);
		*ret_ip = f->walk.last_ip;
	}
	h->next_t = later_of(now(f), h->t);
	return is_tip;
}

/*
 * Take where the return or indirect branch at the end of @s leads to: @ret_next, NULL if there is
 * no memory.
 *
 * Return: whether the next packet says it.
 */
static inline bool take_hot_target(struct flow *f, struct hot *h, struct seg *s,
				   struct seg **ret_next)
{
	const bool returns = s->kind == SEG_RETURN;
	struct seg_call *call;
	uint64_t ip;

	if (h->tnt.n == 0 && (walk_quick_tip(&f->walk, &ip) ||
			      (!(returns && walk_quick_tnt(&f->walk, &h->tnt.bits, &h->tnt.n)) &&
			       take_slow_target(f, h, returns, &ip)))) {
		push_hot_calls(f, s);
		*ret_next = link_to(f, s, ip);
		return true;
	}
	/* A bit stands for a return to the last call. */
	if (h->tnt.n == 0 || !returns || !(h->tnt.bits >> 63) || f->calls.depth + s->n_calls == 0)
		return false;
	push_hot_calls(f, s);
	ip = retstack_pop(&f->calls, &call);
	*ret_next = call ? link_back(f, s, ip, call) : link_to(f, s, ip);
	return tnt_pop(&h->tnt);
}

/*
 * Go on while the next packets are TNT and TIP packets, with packets of time between, and decide a
 * segment each. Everything else is left to do_step(), as is an error. A segment's time is
 * the one that is known before the packet that decides it.
 */
static int run_hot(struct flow *f, struct runlist *out)
{
	struct ptd_run *o = out->runs + out->n, *const last = out->runs + out->n_max - SEG_RUNS_MAX;
	struct hot h = { .tnt = f->tnt, .t = f->base.t, .next_t = f->base.t };
	const uint64_t epoch = view_epoch(f->base.view);
	struct seg *s, *next;
	uint64_t n_insns = 0;

	if (f->epoch != epoch) {
		retstack_forget_calls(&f->calls);
		f->latest = NULL;
	}
	f->epoch = epoch;
	if (find_seg(f, f->ip, &s) < 0)
		return -ENOMEM;
	while (o <= last) {
		if (s->kind == SEG_COND) {
			bool is_taken;

			if (!has_bit(f, &h))
				break;
			is_taken = tnt_pop(&h.tnt);
			next = seg_link(&s->to[is_taken]) ?: link_cond(f, s, is_taken);
			push_hot_calls(f, s);
		} else if (s->kind == SEG_RETURN || s->kind == SEG_INDIRECT) {
			if (!take_hot_target(f, &h, s, &next))
				break;
		} else if (s->kind == SEG_GONE) {
			s = link_gone(f, s);
			if (!s)
				return -ENOMEM;
			continue;
		} else {
			break;
		}
		if (!next)
			return -ENOMEM;
		o = runlist_copy(o, s, h.t);
		n_insns += s->n_insns;
		s = next;
		h.t = h.next_t;
	}
	out->n = (size_t)(o - out->runs);
	out->n_insns += n_insns;
	f->is_behind_branch = f->is_behind_branch || n_insns > 0;
	f->ip = s->ip;
	f->latest = s;
	f->base.t = h.t;
	f->tnt = h.tnt;
	return 0;
}

/*
 * Steps
 */

static enum result stop(const struct flow *f, enum engine_stop why, struct engine_step *ret_step)
{
	engine_stop(&f->base, why, 0, ret_step);
	return RESULT_STOP;
}

static enum result fail(struct flow *f, enum ptd_gap_reason reason, uint64_t ip)
{
	f->failure = (struct failure){ .reason = reason, .ip = ip };
	f->has_failed = true;
	return RESULT_FAIL;
}

/* Packets are over. */
static enum result end(struct flow *f)
{
	f->failure = (struct failure){ .is_end = true };
	f->has_failed = true;
	return RESULT_FAIL;
}

/* Packets were used up: code that ran until then did not spin. */
static void reset_spin(struct flow *f)
{
	f->base.spin_insns = f->base.n_direct = 0;
}

/* A stretch of code begins at @ip, behind the packet that was taken last. Return: whether the
 * caller must say whose it is: it did not promise that until then. */
static bool begin_stretch(struct flow *f, uint64_t ip)
{
	uint64_t to = f->base.t;

	if (f->base.config.has_threads) {
		engine_begin_stretch(&f->base, when_find(&f->when, &f->walk, ip), !(ip >> 63));
		to = f->base.bounds.to ?: f->base.t;
	}
	/* Time that goes back is broken. */
	return f->base.t >= f->base.limit || to >= f->base.limit || to < f->base.t;
}

/* Give out @s, from instruction @first on, which no packet decides, and go on behind it. */
static enum result go_on(struct flow *f, struct runlist *out, const struct seg *s, size_t first)
{
	size_t end = 0;

	for (size_t i = 0; i < s->n_runs; i++) {
		const struct ptd_run *run = &s->runs[i];
		const struct ptd_insn *last = &run->block->insns[run->n - 1];

		end += run->n;
		if (last->iclass != PTD_INSN_JUMP && last->iclass != PTD_INSN_CALL)
			continue;
		if (engine_circles(&f->base, run->base + (uint64_t)run->block->target)) {
			runlist_add(out, s, first, end, f->base.t);
			return fail(f, PTD_GAP_NO_PROGRESS, run->base + last->offset + last->size);
		}
	}
	runlist_add(out, s, first, s->n_insns, f->base.t);
	push_calls(f, s);
	f->ip = s->to_ip[0];
	f->is_done = false;
	f->base.spin_insns += s->n_insns;
	return f->base.spin_insns > ENGINE_SPIN_MAX ? fail(f, PTD_GAP_NO_PROGRESS, f->ip)
						    : RESULT_ON;
}

/* Packets do not say where the branch that @s ends with leads. */
static enum result contradict(struct flow *f, struct runlist *out, const struct seg *s)
{
	const uint64_t ip = seg_last_ip(s);

	runlist_add(out, s, f->is_done, s->n_insns, f->base.t);
	if (f->has_event)
		return fail(f, PTD_GAP_BAD_FLOW, ip);
	switch (walk_ahead(&f->walk)) {
	case WALK_END:
		return end(f);
	case WALK_ERROR:
		return fail(f, f->walk.error, ip);
	default:
		return fail(f, PTD_GAP_BAD_FLOW, ip);
	}
}

/* Does the kernel return to user code at @ip, by what @s ends with? That code is of whatever thread
 * the kernel has switched to. */
static bool leaves_kernel(const struct seg *s, uint64_t ip)
{
	const struct ptd_run *last = &s->runs[s->n_runs - 1];

	return last->base >> 63 && !(ip >> 63) &&
	       last->block->insns[last->n - 1].iclass == PTD_INSN_RETURN_FAR;
}

/*
 * The packet at @offset has decided where @s leads: to @ip. Give it out.
 */
static enum result decide_seg(struct flow *f, struct runlist *out, const struct seg *s, uint64_t ip,
			      uint64_t offset, struct engine_step *ret_step)
{
	const bool is_behind = offset >= f->base.pause, is_later = now(f) > f->base.t;
	bool asks;

	reset_spin(f);
	if (is_behind && s->n_insns > 1)
		runlist_add(out, s, f->is_done, s->n_insns - 1u, f->base.t);
	ret_step->n_before = out->n;
	runlist_add(out, s, is_behind && s->n_insns > 1 ? s->n_insns - 1u : f->is_done, s->n_insns,
		    f->base.t);
	if (s->kind != SEG_RETURN)
		push_calls(f, s);
	f->ip = ip;
	f->is_done = false;
	f->is_behind_branch = true;
	if (is_later)
		f->base.t = now(f);
	asks = is_later && f->base.t >= f->base.limit;
	if (leaves_kernel(s, ip)) {
		f->walk.is_timed = false;
		asks = begin_stretch(f, ip) || asks;
	}
	if (is_behind) {
		f->base.ask = asks;
		engine_pass(&f->base, ret_step->n_before, ret_step);
		return RESULT_STOP;
	}
	return asks ? stop(f, ENGINE_ASK, ret_step) : RESULT_ON;
}

/* Take a bit of a TNT. @offset stays as it is if it is of one that was taken before. */
static bool take_bit(struct flow *f, enum walk_next next, bool *ret_bit, uint64_t *offset)
{
	if (f->tnt.n == 0) {
		if (next != WALK_TNT)
			return false;
		*offset = f->walk.offset;
		f->tnt.n = walk_take_tnt(&f->walk, &f->tnt.bits);
		if (f->tnt.n == 0)
			return false;
	} else {
		*offset = 0;
	}
	*ret_bit = tnt_pop(&f->tnt);
	return true;
}

static enum result take_return(struct flow *f, struct runlist *out, const struct seg *s, bool bit,
			       uint64_t offset, struct engine_step *ret_step)
{
	struct seg_call *call;
	uint64_t ip;

	/* The calls on the way come before it. */
	push_calls(f, s);
	if (!bit || f->calls.depth == 0)
		return contradict(f, out, s);
	ip = retstack_pop(&f->calls, &call);
	return decide_seg(f, out, s, ip, offset, ret_step);
}

/*
 * Where a branch leads that needs a TIP. The CPU may have written it behind a TNT whose bits, or
 * the rest of them, are of branches behind this one.
 */
static enum result take_target(struct flow *f, struct runlist *out, const struct seg *s,
			       struct engine_step *ret_step)
{
	enum walk_next next = walk_ahead(&f->walk);
	uint64_t offset, ip;

	if (next == WALK_TNT && f->tnt.n == 0) {
		f->tnt.n = walk_take_tnt(&f->walk, &f->tnt.bits);
		next = walk_ahead(&f->walk);
	}
	offset = f->walk.offset;
	if (next != WALK_TIP || !walk_take_tip(&f->walk, &ip))
		return contradict(f, out, s);
	if (s->kind == SEG_RETURN)
		push_calls(f, s);
	return decide_seg(f, out, s, ip, offset, ret_step);
}

/* Give out one segment. @next: the packet that comes next, if it is needed. */
static int take_segment(struct flow *f, struct runlist *out, enum walk_next next,
			struct engine_step *ret_step, enum result *ret_result)
{
	uint64_t bit_offset = 0;
	struct seg *s;
	bool bit = false;

	if (find_current_seg(f, &s) < 0)
		return -ENOMEM;
	switch (s->kind) {
	case SEG_ON:
		*ret_result = go_on(f, out, s, f->is_done);
		return 0;
	case SEG_NOWHERE:
		runlist_add(out, s, f->is_done, s->n_insns, f->base.t);
		*ret_result = fail(f, s->reason, s->n_runs ? s->to_ip[0] : f->ip);
		return 0;
	case SEG_COND:
		if (take_bit(f, next, &bit, &bit_offset))
			*ret_result = decide_seg(f, out, s, s->to_ip[bit], bit_offset, ret_step);
		else
			*ret_result = contradict(f, out, s);
		return 0;
	case SEG_RETURN:
		if (take_bit(f, next, &bit, &bit_offset)) {
			*ret_result = take_return(f, out, s, bit, bit_offset, ret_step);
			return 0;
		}
		break;
	default:
		break;
	}
	*ret_result = take_target(f, out, s, ret_step);
	return 0;
}

/*
 * Events
 */

/* Return: as place_find(), of the event that waits for its place. */
static size_t find_event_place(const struct flow *f, const struct seg *s)
{
	const struct place place = { .event = &f->event,
				     .is_done = f->is_done,
				     .filters = f->base.config.filters,
				     .n_filters = f->base.config.n_filters,
				     .lacks_ip = f->base.errata & ERRATUM_SKL014 };

	return place_find(&place, s);
}

/* Stand at the branch that @s ends with, which was given out. */
static void stand_behind_branch(struct flow *f, const struct seg *s)
{
	struct ptd_run run = s->runs[s->n_runs - 1];
	const uint64_t ip = seg_last_ip(s);
	const bool calls =
	    run.block->insns[run.n - 1].iclass == PTD_INSN_CALL_INDIRECT && s->n_calls > 0;

	if (s != &f->done.seg) {
		f->done.seg = *s;
		f->done.call = calls ? s->calls[s->n_calls - 1] : (struct seg_call){};
	}
	/* Its id may be given by another thread at this time. */
	f->done.block = (struct ptd_block){
		.n_insns = 1,
		.size = run.block->size,
		.mode = run.block->mode,
		.object = run.block->object,
		.address = run.block->address,
		.bytes = run.block->bytes,
		.insns = run.block->insns + (run.n - 1),
		.target = run.block->target,
	};
	f->done.run = run;
	f->done.run.block = &f->done.block;
	f->done.run.n = 1;
	f->done.seg.runs = &f->done.run;
	f->done.seg.n_runs = f->done.seg.n_insns = 1;
	f->done.seg.calls = &f->done.call;
	f->done.seg.n_calls = calls;
	f->done.seg.ip = f->ip = ip;
	f->is_done = true;
}

/* Push what the direct calls push that are before instruction @end of @s. */
static void push_before(struct flow *f, const struct seg *s, size_t end)
{
	size_t at = 0, n_calls = 0;

	for (size_t i = 0; i < s->n_runs && n_calls < s->n_calls; i++) {
		const struct ptd_run *run = &s->runs[i];
		const struct ptd_insn *last = &run->block->insns[run->n - 1];

		at += run->n;
		if (at > end || last->iclass != PTD_INSN_CALL ||
		    s->calls[n_calls].ret != run->base + last->offset + last->size)
			continue;
		retstack_push(&f->calls, s->calls[n_calls++].ret, NULL);
	}
}

/* Stand at instruction @i of @s, before it, or behind it but not yet where it leads. */
static void stand_at(struct flow *f, struct runlist *out, const struct seg *s, size_t i)
{
	const bool is_behind = f->event.place != WALK_BEFORE;
	const size_t end = i + is_behind;
	const uint8_t *bytes;
	uint64_t ip;

	runlist_add(out, s, f->is_done, end, f->base.t);
	push_before(f, s, end);
	f->is_behind_branch = false;
	f->is_done = false;
	if (end < s->n_insns) {
		(void)seg_insn(s, end, &ip, &bytes);
		f->ip = ip;
	} else if (s->kind == SEG_ON || s->kind == SEG_NOWHERE) {
		f->ip = s->to_ip[0];
	} else {
		stand_behind_branch(f, s);
	}
	if (is_behind) {
		(void)seg_insn(s, i, &ip, &bytes);
		if (f->event.kind == WALK_MARK && f->event.mark == PTD_MARK_PTWRITE) {
			f->event.ip = ip;
			f->event.has_ip = true;
		}
	}
}

/* Erratum BDM64: can the address of an abort be reached from here? If not, the packet of the branch
 * that led here was wrong: it led there. */
static int mend_bdm64(struct flow *f)
{
	uint64_t ip = f->ip;
	size_t n = 0;
	struct seg *s;

	if (!(f->base.errata & ERRATUM_BDM64) || f->event.kind != WALK_TSX ||
	    !(f->event.value & PACKET_TSX_ABORT) || !f->is_behind_branch)
		return 0;
	do {
		if (find_seg(f, ip, &s) < 0)
			return -ENOMEM;
		if (find_event_place(f, s) < s->n_insns)
			return 0;
		n += s->n_insns;
		ip = s->to_ip[0];
	} while (s->kind == SEG_ON && n < BDM64_INSNS_MAX);
	f->ip = f->event.ip;
	return 0;
}

/* Erratum SKD022: what looks like an interruption of a VM entry is one that packets end at. */
static bool is_skd022(const struct flow *f, const struct seg *s, size_t i)
{
	return f->base.errata & ERRATUM_SKD022 && f->event.kind == WALK_ASYNC_DISABLED &&
	       place_is_vm_entry(s, i);
}

/* Go on to the place of the event. Return: RESULT_STOP if it is reached. */
static int go_to_event(struct flow *f, struct runlist *out, enum result *ret_result)
{
	struct seg *s;
	size_t i;
	int r;

	r = mend_bdm64(f);
	if (r == 0)
		r = find_current_seg(f, &s);
	if (r < 0)
		return r;
	i = find_event_place(f, s);
	if (i < s->n_insns && is_skd022(f, s, i)) {
		f->event.kind = WALK_DISABLED;
		f->event.place = WALK_BEHIND;
		f->event.has_ip = f->event.to != 0;
	}
	if (i < s->n_insns) {
		stand_at(f, out, s, i);
		if (f->event.kind == WALK_DISABLED)
			f->event.ip = f->event.place == WALK_BEHIND ? f->event.to : f->event.ip;
		*ret_result = RESULT_STOP;
		return 0;
	}
	/* It may also be reached where nothing is known. */
	if (f->event.place == WALK_BEFORE && s->n_insns == 0 && f->event.ip == f->ip) {
		*ret_result = RESULT_STOP;
		return 0;
	}
	if (s->kind == SEG_ON) {
		*ret_result = go_on(f, out, s, f->is_done);
	} else if (s->kind == SEG_NOWHERE) {
		runlist_add(out, s, f->is_done, s->n_insns, f->base.t);
		if (f->event.place == WALK_BEFORE && f->event.ip == s->to_ip[0] && s->n_runs) {
			push_calls(f, s);
			f->ip = s->to_ip[0];
			f->is_done = false;
			*ret_result = RESULT_STOP;
			return 0;
		}
		*ret_result = fail(f, s->reason, s->n_runs ? s->to_ip[0] : f->ip);
	} else if (f->event.kind == WALK_DISABLED && !f->event.has_ip && s->kind != SEG_COND) {
		/* No near branch leaves what is traced, but the packet that would say where it led
		 * is missing: real CPUs have written that. */
		stand_at(f, out, s, s->n_insns - 1u);
		*ret_result = RESULT_STOP;
	} else {
		*ret_result = contradict(f, out, s);
	}
	return 0;
}

/* Take the event that comes next. */
static enum result fetch_event(struct flow *f)
{
	if (!walk_take_event(&f->walk, &f->event))
		return fail(f, f->walk.error, f->enabled ? f->ip : 0);
	f->has_event = true;
	f->is_told = false;
	return RESULT_ON;
}

/* May the event stand where it does? */
static bool makes_sense(const struct flow *f, const struct walk_event *event)
{
	switch (event->kind) {
	case WALK_ENABLED:
		return !f->enabled;
	case WALK_DISABLED:
	case WALK_ASYNC:
	case WALK_ASYNC_DISABLED:
		return f->enabled;
	case WALK_MARK:
		return event->mark != PTD_MARK_STOP || !f->enabled;
	default:
		return true;
	}
}

/* Does a PSB+ repeat another mode than that of the code that it stands in? */
static bool is_other_mode(const struct flow *f, const struct walk_event *event)
{
	return event->kind == WALK_MODE && event->is_status && f->enabled && f->has_mode &&
	       f->base.mode != event->value;
}

static enum result deliver_enabled(struct flow *f, const struct walk_event *event,
				   struct engine_step *ret_step)
{
	f->enabled = true;
	f->ip = event->ip;
	f->is_done = f->is_behind_branch = false;
	f->tnt.n = 0;
	return begin_stretch(f, event->ip) ? stop(f, ENGINE_ASK, ret_step) : RESULT_ON;
}

static void take_overflow(struct flow *f, const struct walk_event *event)
{
	f->enabled = event->has_ip;
	f->ip = event->ip;
	f->is_done = f->is_behind_branch = false;
	f->tnt.n = 0;
	if (event->has_ip)
		(void)begin_stretch(f, event->ip);
}

/*
 * The PSB+ to join at is over: forget what it does not say.
 */
static enum result deliver_join(struct flow *f, const struct walk_event *event,
				struct engine_step *ret_step)
{
	f->base.decoded += event->offset > f->base.from ? event->offset - f->base.from : 0;
	f->base.from = f->base.paid = event->offset;
	f->calls = (struct retstack){};
	f->tnt.n = 0;
	f->is_behind_branch = f->is_done = f->is_told = false;
	f->when = (struct when){};
	f->base.bounds = (struct when_bounds){};
	f->base.bounds_t = f->base.limit = 0;
	f->walk.recovered = 0;
	view_put(f->base.view);
	f->base.view = NULL;
	f->base.ask = true;
	ret_step->offset = event->value;
	return stop(f, ENGINE_JOIN, ret_step);
}

static enum result deliver_kind(struct flow *f, const struct walk_event *event,
				struct engine_step *ret_step)
{
	switch (event->kind) {
	case WALK_ENABLED:
		return deliver_enabled(f, event, ret_step);
	case WALK_JOIN:
		return deliver_join(f, event, ret_step);
	case WALK_NOTHING:
		return RESULT_ON;
	case WALK_DISABLED:
		f->enabled = f->is_done = false;
		break;
	case WALK_ASYNC:
		f->ip = event->to;
		f->is_behind_branch = false;
		break;
	case WALK_ASYNC_DISABLED:
		f->enabled = false;
		break;
	case WALK_OVERFLOW:
		take_overflow(f, event);
		break;
	case WALK_MODE:
		f->has_mode = true;
		break;
	default:
		break;
	}
	return engine_report(&f->base, event, ret_step) ? RESULT_STOP : RESULT_ON;
}

/* Deliver the event whose place is reached. */
static enum result deliver_event(struct flow *f, struct engine_step *ret_step)
{
	const struct walk_event event = f->event;
	bool is_later = event.t > f->base.t;
	enum result result;

	f->has_event = false;
	if (!makes_sense(f, &event))
		return fail(f, PTD_GAP_BAD_PACKET, 0);
	if (is_other_mode(f, &event))
		return fail(f, PTD_GAP_BAD_FLOW, f->ip);
	if (is_later)
		f->base.t = event.t;
	reset_spin(f);
	result = deliver_kind(f, &event, ret_step);
	if (f->base.pause < UINT64_MAX) {
		(void)walk_ahead(&f->walk);
		f->base.passed = engine_used(&f->base) > f->base.pause;
	}
	is_later = is_later && f->base.t >= f->base.limit;
	if (result == RESULT_STOP && ret_step->stop == ENGINE_MARK && is_later)
		f->base.ask = true;
	if (result == RESULT_ON && is_later)
		return stop(f, ENGINE_ASK, ret_step);
	return result;
}

/* Return: the offset of the packet that is next, or that the event begins with. */
static uint64_t taken_of(const struct flow *f)
{
	if (!f->has_event)
		return f->walk.offset;
	return f->event.kind == WALK_ASYNC || f->event.kind == WALK_ASYNC_DISABLED
		   ? f->event.fup
		   : f->event.offset;
}

/*
 * Notes: has what the oldest one is about been reached? It stands before what its packet leads to;
 * that of what interrupted the code before the event that it did.
 */
static bool is_note_due(const struct flow *f, bool at_event)
{
	const struct walk_note *note = &f->walk.notes[0];

	if (f->walk.n_notes == 0)
		return false;
	/* Too many wait only if the packets are broken. */
	if (f->has_failed || f->walk.n_notes == WALK_NOTES_MAX)
		return true;
	if (!at_event)
		return !note->interrupts && note->next < taken_of(f);
	if (note->interrupts)
		return (f->event.kind == WALK_ASYNC || f->event.kind == WALK_ASYNC_DISABLED) &&
		       !f->is_told && note->next == f->event.fup;
	return note->offset < f->event.end;
}

static enum result deliver_note(struct flow *f, struct engine_step *ret_step)
{
	const struct walk_note note = walk_take_note(&f->walk);

	f->is_told = note.interrupts && note.kind == PTD_MARK_CFE;
	ret_step->mark = note.kind;
	ret_step->value = note.value;
	ret_step->extra = note.extra;
	return stop(f, ENGINE_MARK, ret_step);
}

/*
 * Errors
 */

/* Forget what is known of the code that led to where execution was. */
static void forget_code(struct flow *f)
{
	f->has_failed = f->is_done = f->is_behind_branch = f->has_mode = false;
	f->tnt.n = f->calls.depth = 0;
}

static void forget(struct engine *engine)
{
	struct flow *f = (struct flow *)engine;

	forget_code(f);
	f->has_event = f->is_told = false;
}

static struct walk *follow(struct engine *engine, uint64_t at)
{
	struct flow *f = (struct flow *)engine;

	f->walk.offset = at;
	return &f->walk;
}

static bool go_on_at(struct engine *engine, const struct walk_point *point)
{
	struct flow *f = (struct flow *)engine;

	f->enabled = true;
	f->ip = point->ip;
	f->base.t = later_of(now(f), f->base.t);
	(void)begin_stretch(f, point->ip);
	return true;
}

static bool sync_at(struct engine *engine, uint64_t at, bool has_ip)
{
	struct flow *f = (struct flow *)engine;

	(void)at;
	f->enabled = has_ip;
	f->ip = f->walk.last_ip;
	f->base.mode = 64;
	(void)walk_ahead(&f->walk);
	if (now(f))
		f->base.t = now(f);
	return true;
}

/* Does the event that is next say where execution is? Not if that is where it failed. */
static bool is_at_event(const struct flow *f)
{
	const struct walk_event *event = &f->event;

	if (!f->has_event || !event->has_ip || !makes_sense(f, event) || event->ip == f->ip)
		return false;
	return event->place == WALK_BEFORE || (event->place == WALK_BEHIND && f->base.view &&
					       view_has_code(f->base.view, event->ip));
}

/* Go on where the event that is next says that execution is. No byte is lost. */
static enum result go_on_at_event(struct flow *f, struct engine_step *ret_step)
{
	const struct failure failure = f->failure;

	forget_code(f);
	f->ip = f->event.ip;
	f->base.ask = true;
	(void)begin_stretch(f, f->ip);
	reset_spin(f);
	ret_step->reason = failure.reason;
	ret_step->offset = engine_used(&f->base);
	engine_stop(&f->base, ENGINE_GAP, failure.ip, ret_step);
	return RESULT_STOP;
}

/* Packets and code do not go on: tell why. */
static enum result give_up(struct flow *f, struct engine_step *ret_step)
{
	const struct failure failure = f->failure;

	if (failure.is_end) {
		engine_end(&f->base, ret_step);
		return RESULT_STOP;
	}
	if (is_at_event(f))
		return go_on_at_event(f, ret_step);
	(void)walk_ahead(&f->walk);
	engine_lose(&f->base, failure.reason, failure.ip, ret_step);
	return RESULT_STOP;
}

/* Do one thing. */
static int do_step(struct flow *f, struct runlist *out, struct engine_step *ret_step,
		   enum result *ret_result)
{
	enum walk_next next = WALK_TNT;

	*ret_result = RESULT_STOP;
	if (f->base.passed) {
		engine_pass(&f->base, out->n, ret_step);
		return 0;
	}
	if (is_note_due(f, false)) {
		(void)deliver_note(f, ret_step);
		return 0;
	}
	if (f->tnt.n == 0 && !f->has_event && !f->has_failed)
		next = walk_ahead(&f->walk);
	if (f->has_failed) {
		(void)give_up(f, ret_step);
		return 0;
	}
	if (f->has_event) {
		*ret_result = RESULT_STOP;
		if (f->enabled && f->event.place != WALK_HERE) {
			const int r = go_to_event(f, out, ret_result);

			if (r < 0 || *ret_result != RESULT_STOP)
				return r;
			/* It is reached once. */
			f->event.place = WALK_HERE;
		}
		*ret_result =
		    is_note_due(f, true) ? deliver_note(f, ret_step) : deliver_event(f, ret_step);
		return 0;
	}
	switch (next) {
	case WALK_EVENT:
		*ret_result = fetch_event(f);
		return 0;
	case WALK_END:
		*ret_result = end(f);
		return 0;
	case WALK_ERROR:
		*ret_result = fail(f, f->walk.error, f->enabled ? f->ip : 0);
		return 0;
	default:
		break;
	}
	if (!f->enabled) {
		/* What waited for it has come to nothing. */
		f->walk.has_waiting = false;
		*ret_result = fail(f, PTD_GAP_BAD_FLOW, 0);
		return 0;
	}
	return take_segment(f, out, next, ret_step, ret_result);
}

static int go(struct engine *engine, struct runlist *out, struct engine_step *ret_step)
{
	struct flow *f = (struct flow *)engine;
	enum result result;
	int r;

	do {
		const uint64_t n_before = out->n_insns;

		if (out->n + 2 * SEG_RUNS_MAX > out->n_max) {
			(void)stop(f, ENGINE_FULL, ret_step);
			return 0;
		}
		r = is_hot(f) ? run_hot(f, out) : 0;
		if (r == 0)
			r = do_step(f, out, ret_step, &result);
		if (r < 0)
			return r;
		if (!engine_can_pay(&f->base, out->n_insns - n_before) && !f->has_failed)
			(void)fail(f, PTD_GAP_NO_PROGRESS, f->ip);
	} while (result != RESULT_STOP);
	return 0;
}

/*
 * The engine
 */

/* The caller may ask for the offset: it is behind the event that comes next. */
static void look_ahead(struct engine *engine)
{
	struct flow *f = (struct flow *)engine;

	if (f->tnt.n == 0 && !f->has_event && !f->has_failed && walk_ahead(&f->walk) == WALK_EVENT)
		(void)fetch_event(f);
}

static uint64_t used(const struct engine *engine)
{
	return walk_used(&((const struct flow *)engine)->walk);
}

static int error(const struct engine *engine)
{
	return walk_read_error(&((const struct flow *)engine)->walk);
}

static int init(struct engine *engine)
{
	struct flow *f = (struct flow *)engine;
	struct walk_config config = engine_walk_config(engine);

	if (engine->config.from)
		config.window = FROM_WINDOW;
	walk_init(&f->walk, &config);
	if (engine->config.from)
		f->walk.join = engine->config.from;
	return 0;
}

static void deinit(struct engine *engine)
{
	walk_deinit(&((struct flow *)engine)->walk);
}

static void pause_at(struct engine *engine, uint64_t at)
{
	struct walk *walk = &((struct flow *)engine)->walk;

	walk->quick_max = at;
	if (walk->quick > at)
		walk->quick = at;
}

static void join_at(struct engine *engine, uint64_t at)
{
	((struct flow *)engine)->walk.join = at;
}

/* What differs between flows that stand at the same joint. */
struct flow_joint {
	struct walk_joint walk;
	uint64_t ip, t, n_bits, cbr, cr3, non_root, vmcs;
	uint8_t mode;
	bool enabled, has_mode, has_event, has_failed, in_transaction, ended;
};

static_assert(sizeof(struct flow_joint) <= sizeof(struct engine_joint), "it has room");

static void get_joint(const struct engine *engine, struct engine_joint *ret_joint)
{
	const struct flow *f = (const struct flow *)engine;
	struct flow_joint joint;

	/* Padding is compared, too. */
	memset(&joint, 0, sizeof(joint));
	walk_get_joint(&f->walk, &joint.walk);
	joint.ip = f->enabled ? f->ip : 0;
	joint.t = f->base.t;
	joint.n_bits = f->tnt.n;
	joint.cbr = f->base.news.cbr;
	joint.cr3 = f->base.news.cr3;
	joint.non_root = f->base.news.non_root;
	joint.vmcs = f->base.news.vmcs;
	joint.mode = f->base.mode;
	joint.enabled = f->enabled;
	joint.has_mode = f->has_mode;
	joint.has_event = f->has_event;
	joint.has_failed = f->has_failed;
	joint.in_transaction = f->base.news.in_transaction;
	joint.ended = f->base.ended;
	memset(ret_joint, 0, sizeof(*ret_joint));
	memcpy(ret_joint, &joint, sizeof(joint));
}

const struct engine_ops engine_flow = {
	.name = "flow",
	.size = sizeof(struct flow),
	.init = init,
	.deinit = deinit,
	.go = go,
	.look_ahead = look_ahead,
	.used = used,
	.error = error,
	.forget = forget,
	.follow = follow,
	.go_on_at = go_on_at,
	.sync_at = sync_at,
	.pause_at = pause_at,
	.join_at = join_at,
	.get_joint = get_joint,
};
