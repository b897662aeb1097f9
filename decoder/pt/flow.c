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
 * An event has a place in the code (enum walk_place). The engine follows the code to that place,
 * which takes no packet, and then delivers the event. If the code does not lead there, packets and
 * code contradict each other.
 *
 * Where a uprobe is, the kernel has put a breakpoint. An instruction that the kernel cannot
 * emulate it then copies to a slot of the page [uprobes], where the thread steps over the copy.
 * The copy may have another register in the place of RIP, but it is as long, and does the same.
 * Slots are used again, so only the breakpoint tells which instruction is in one: the thread was
 * interrupted there, and goes on in the slot. It is shown as being at its own address, and so is
 * what happens in the slot. Calls and jumps the kernel executes itself; they are shown, too, as
 * they tell which function runs.
 *
 * Behind an error the engine goes on at the next packet that says where execution is; the bytes
 * before it are a gap.
 */

#include "decoder/pt/engine_base.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "decoder/pt/errata.h"
#include "decoder/pt/retstack.h"
#include "decoder/x86/insn.h"

/* How many segments are looked at behind an instruction that may have gone on. */
#define LEADS_ON_MAX 64

/* The bits of the last TNT that are left for branches to come. */
struct tnt {
	uint64_t bits; /* the oldest is the highest */
	unsigned n;
};

struct flow {
	struct engine base;
	struct runlist *out;      /* borrowed, what is filled in while the engine goes on: runs, */
	struct engine_step *step; /* and why it stops */

	bool enabled; /* packets are on, execution is at: */
	uint64_t ip;
	bool is_done; /* the instruction there was given out, but where it leads is not decided */
	struct {
		struct seg seg; /* of it alone */
		struct ptd_run run;
		struct seg_call call;
	} done;
	bool is_behind_branch; /* a branch led there */
	uint64_t entered;      /* where user code has just gone on; or 0 */
	uint64_t slot, probed; /* the slot, and the address of the instruction in it; or 0 */
	bool has_mode;         /* packets have told the mode since the last gap */

	struct tnt tnt;
	struct retstack calls; /* those whose returns may be compressed */
	uint64_t epoch;        /* of the view whose segments' calls these are */
	unsigned n_unlinked; /* branches that led to none of the segments that they are linked to */

	bool has_event; /* taken, but its place was not reached yet */
	struct walk_event event;
	bool is_told; /* the mark of the event's cause was given out (an interruption's CFE) */

	/* Packets and code do not go on. */
	bool has_failed;
	struct failure {
		enum ptd_gap_reason reason;
		uint64_t ip;
		bool is_end; /* there is no error: the packets are over */
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

/*
 * Segments
 */

/* @is_hot: for run_hot(). Others push the addresses alone: the calls of @s may be gone when
 * run_hot() pops them. */
static inline void push_calls(struct flow *f, const struct seg *s, bool is_hot)
{
	for (size_t i = 0; i < s->n_calls; i++)
		retstack_push(&f->calls, s->calls[i].ret, is_hot ? &s->calls[i] : NULL);
}

/* Return: the segment at @ip; NULL if there is no memory. */
static struct seg *find_seg(struct flow *f, uint64_t ip)
{
	static struct seg nowhere = { .kind = SEG_NOWHERE, .reason = PTD_GAP_NO_CODE };
	struct seg *seg = &nowhere;

	if (f->base.view && view_find(f->base.view, ip, f->base.mode, &seg) < 0) {
		f->base.error = -ENOMEM;
		return NULL;
	}
	return seg;
}

/* Return: the segment of what comes next, or of the instruction that was given out already. */
static struct seg *find_current_seg(struct flow *f)
{
	return f->is_done ? &f->done.seg : find_seg(f, f->ip);
}

/* Set @link, which leads to @ip. Return: the segment there; NULL if there is no memory. */
static struct seg *set_link(struct flow *f, struct seg **link, uint64_t ip)
{
	struct seg *next = find_seg(f, ip);

	if (next)
		seg_set_link(link, next);
	return next;
}

/* One in this number of branches that led elsewhere than they are linked to is linked anew. */
#define N_UNLINKED 16

/* The way behind @s leads to @ip, which it is not linked to. Return: as set_link(). */
static struct seg *link_anew(struct flow *f, struct seg *s, uint64_t ip)
{
	size_t i = seg_link(&s->to[0]) ? 1 : 0;

	if (i > 0 && seg_link(&s->to[1])) {
		if (f->n_unlinked++ % N_UNLINKED != 0)
			return find_seg(f, ip);
		i = f->n_unlinked / N_UNLINKED % 2;
	}
	return set_link(f, &s->to[i], ip);
}

/*
 * The way behind @s leads to @ip. Many branches lead to many places in turn: if the links were set
 * each time, the memory of the segment would go to and fro between the CPUs of threads that share
 * it, at each of these branches.
 *
 * Return: as set_link().
 */
static inline struct seg *link_to(struct flow *f, struct seg *s, uint64_t ip)
{
	struct seg *next = seg_link(&s->to[0]);

	if (next && next->ip == ip)
		return next;
	next = seg_link(&s->to[1]);
	return next && next->ip == ip ? next : link_anew(f, s, ip);
}

/* The return at the end of @s leads to @ip, behind @call. Return: as set_link(). */
static inline struct seg *link_back(struct flow *f, const struct seg *s, uint64_t ip,
				    struct seg_call *call)
{
	struct seg *next = seg_link(&call->back);

	return next && next->mode == s->mode ? next : set_link(f, &call->back, ip);
}

/* The time that the packets state so far is that of the next packet. Return: whether the caller
 * need not be asked whose code runs at that time. */
static bool is_in_limit(const struct flow *f)
{
	return walk_now(&f->base.walk) <= f->base.t || walk_now(&f->base.walk) < f->base.limit;
}

/* Pass over packets of time. Return: whether @wanted comes next, and run_hot() may take it. */
static bool is_next(struct flow *f, enum walk_next wanted)
{
	return walk_ahead(&f->base.walk) == wanted && f->base.walk.n_notes == 0 &&
	       f->base.walk.offset < f->base.pause && is_in_limit(f);
}

static inline uint64_t later_of(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* The next packet is no TNT of one byte. Return: the bits of the TNT that follows packets of time,
 * if one does. */
static struct tnt take_slow_tnt(struct flow *f)
{
	struct tnt tnt = {};

	walk_pass_time(&f->base.walk);
	if (is_in_limit(f) && (walk_quick_tnt(&f->base.walk, &tnt.bits, &tnt.n) ||
			       walk_quick_long_tnt(&f->base.walk, &tnt.bits, &tnt.n)))
		return tnt;
	if (is_next(f, WALK_TNT))
		tnt.n = walk_take_tnt(&f->base.walk, &tnt.bits);
	return tnt;
}

/* Can run_hot() go on from here? */
static bool is_hot(const struct flow *f)
{
	return f->base.view && f->enabled && !f->entered && !f->is_done && !f->has_event &&
	       !f->has_failed && !f->base.passed && f->base.walk.n_notes == 0 && is_in_limit(f);
}

/* Copy all runs of @seg, which has some, with time @t. Return: behind the last one. */
static inline struct ptd_run *copy_runs(struct ptd_run *to, const struct seg *seg, uint64_t t)
{
	const struct ptd_run *run = seg->runs;
	const size_t n = seg->n_runs;

	*to = *run;
	to->t = t;
	/* Nearly all segments have one run. */
	if (__builtin_expect(n > 1, 0)) {
		for (size_t i = 1; i < n; i++) {
			to[i] = run[i];
			to[i].t = t;
		}
	}
	return to + n;
}

/* @s, which is new, is given out from run number @first of the step on. */
static void note_new_runs(struct flow *f, struct seg *s, size_t first)
{
	bool is_new = false;

	for (size_t i = 0; i < s->n_runs; i++)
		is_new = engine_note_run(&f->base, s->runs[i].block, first + i) || is_new;
	if (!is_new)
		seg_set_shown(s);
}

/* Packets were used up, so the code has made progress. */
static void reset_spin(struct flow *f)
{
	f->base.spin_insns = f->base.circle.n = 0;
}

/* What run_hot() keeps in registers. */
struct hot {
	struct tnt tnt;
	uint64_t t, next_t; /* of the segment, and of the one behind it */
};

/* Return: whether there is a bit of a TNT for the next branch. */
static inline bool has_bit(struct flow *f, struct hot *h)
{
	if (h->tnt.n > 0 || walk_quick_tnt(&f->base.walk, &h->tnt.bits, &h->tnt.n))
		return true;
	h->tnt = take_slow_tnt(f);
	h->next_t = later_of(walk_now(&f->base.walk), h->t);
	return h->tnt.n > 0;
}

/* Packets of time come next, or a rare one. Return: whether a TIP is behind them; if not, and if a
 * TNT may stand for it, h->tnt has its bits. */
static bool take_slow_target(struct flow *f, struct hot *h, bool returns, uint64_t *ret_ip)
{
	bool is_tip;

	walk_pass_time(&f->base.walk);
	is_tip = is_in_limit(f) && walk_quick_tip(&f->base.walk, ret_ip);
	if (!is_tip && returns)
		h->tnt = take_slow_tnt(f);
	if (!is_tip && h->tnt.n == 0)
		is_tip = is_next(f, WALK_TIP) && f->base.walk.packet.ip_bytes &&
			 walk_take_tip(&f->base.walk, ret_ip);
	h->next_t = later_of(walk_now(&f->base.walk), h->t);
	return is_tip;
}

/*
 * Take where the return or indirect branch at the end of @s leads to: @ret_next, as of set_link().
 *
 * Return: whether the next packet says it.
 */
static inline bool take_hot_target(struct flow *f, struct hot *h, struct seg *s,
				   struct seg **ret_next)
{
	const bool returns = s->kind == SEG_RETURN;
	struct seg_call *call;
	uint64_t ip;

	if (h->tnt.n == 0 &&
	    (walk_quick_tip(&f->base.walk, &ip) ||
	     (!(returns && walk_quick_tnt(&f->base.walk, &h->tnt.bits, &h->tnt.n)) &&
	      take_slow_target(f, h, returns, &ip)))) {
		push_calls(f, s, true);
		if (returns)
			retstack_drop(&f->calls);
		*ret_next = link_to(f, s, ip);
		return true;
	}
	/* A bit stands for a return to the last call. */
	if (h->tnt.n == 0 || !returns || !(h->tnt.bits >> 63) || f->calls.depth + s->n_calls == 0)
		return false;
	push_calls(f, s, true);
	ip = retstack_pop(&f->calls, &call);
	*ret_next = call ? link_back(f, s, ip, call) : link_to(f, s, ip);
	return tnt_pop(&h->tnt);
}

/*
 * Go on while the next packets are TNT and TIP packets, with packets of time between, and decide a
 * segment each. Everything else is left to do_step(), as is an error. A segment's time is
 * the one that is known before the packet that decides it.
 */
static void run_hot(struct flow *f)
{
	struct runlist *out = f->out;
	struct ptd_run *o = out->runs + out->n, *const last = out->runs + out->n_max - SEG_RUNS_MAX;
	/* Packets of time before the one that is next may have been passed. */
	struct hot h = { .tnt = f->tnt,
			 .t = f->base.t,
			 .next_t = later_of(walk_now(&f->base.walk), f->base.t) };
	const uint64_t epoch = view_epoch(f->base.view);
	struct seg *s = find_seg(f, f->ip), *next;
	uint64_t n_insns = 0;

	if (f->epoch != epoch)
		retstack_forget_calls(&f->calls);
	f->epoch = epoch;
	if (!s)
		return;
	while (o <= last) {
		if (s->kind == SEG_COND) {
			bool is_taken;

			if (!has_bit(f, &h))
				break;
			is_taken = tnt_pop(&h.tnt);
			next = seg_link(&s->to[is_taken])
				   ?: set_link(f, &s->to[is_taken], s->to_ip[is_taken]);
			push_calls(f, s, true);
		} else if (s->kind == SEG_RETURN || s->kind == SEG_INDIRECT) {
			if (!take_hot_target(f, &h, s, &next))
				break;
		} else if (s->kind == SEG_GONE) {
			/* What leads to it still does, and to what holds in its place. */
			s = seg_link(&s->to[0]) ?: set_link(f, &s->to[0], s->ip);
			if (!s)
				return;
			continue;
		} else {
			break;
		}
		if (!next)
			return;
		if (__builtin_expect(seg_is_new(s), 0))
			note_new_runs(f, s, (size_t)(o - out->runs));
		o = copy_runs(o, s, h.t);
		n_insns += s->n_insns;
		s = next;
		h.t = h.next_t;
	}
	out->n = (size_t)(o - out->runs);
	out->n_insns += n_insns;
	if (n_insns > 0) {
		reset_spin(f);
		f->is_behind_branch = true;
	}
	f->ip = s->ip;
	f->base.t = h.t;
	f->tnt = h.tnt;
}

/*
 * Steps
 */

/*
 * What follows goes on by a step. Return: true if the caller must see what it came to: f->step is
 * filled in then, or f->base.error is set.
 */

static bool stop(struct flow *f, enum engine_stop why)
{
	engine_stop(&f->base, why, 0, f->step);
	return true;
}

/* Packets and code do not go on at @ip. The next step sees to that. */
static bool fail(struct flow *f, enum ptd_gap_reason reason, uint64_t ip)
{
	f->failure = (struct failure){ .reason = reason, .ip = ip };
	f->has_failed = true;
	return false;
}

/* A stretch of code begins at @ip, behind the packet that was taken last. Return: whether the
 * caller must say whose it is: it did not promise that until then. */
static bool begin_stretch(struct flow *f, uint64_t ip)
{
	uint64_t to = f->base.t;

	if (f->base.config.has_threads) {
		engine_begin_stretch(&f->base, when_find(&f->base.when, &f->base.walk, ip),
				     !(ip >> 63));
		to = f->base.bounds.to ?: f->base.t;
	}
	/* Time that goes back is broken. */
	return f->base.t >= f->base.limit || to >= f->base.limit || to < f->base.t;
}

/*
 * Slots of uprobes
 */

#define SLOT_PAGE     4096
#define SLOT_SIZE     128
#define COPY_SIZE_MAX 16 /* of the kernel's copy of an instruction */

/* What happened in the slot happened where the probed instruction is. */
static void translate_event(struct flow *f)
{
	struct walk_event *event = &f->event;

	if (f->slot && event->has_ip && event->kind != WALK_ENABLED &&
	    event->kind != WALK_OVERFLOW && event->ip >= f->slot &&
	    event->ip - f->slot < COPY_SIZE_MAX)
		event->ip = f->probed + (event->ip - f->slot);
}

/* Execution is in a slot, whose instruction is the one at @probed. */
static void leave_slot(struct flow *f, uint64_t probed)
{
	f->slot = f->ip;
	f->probed = f->ip = probed;
	if (f->has_event)
		translate_event(f);
}

/* Give out the branch that @s begins with, which the kernel has executed itself for a uprobe, if it
 * is a direct one that leads to where execution is. */
static void give_out_emulated(struct flow *f, const struct seg *s)
{
	const struct ptd_run *run = &s->runs[0];
	const uint8_t iclass = run->block->insns[run->first].iclass;
	struct runlist *out = f->out;

	if (run->n != 1 || (iclass != PTD_INSN_CALL && iclass != PTD_INSN_JUMP) ||
	    run_target(run) != f->ip || run_next(run) == f->ip)
		return;
	(void)engine_note_run(&f->base, run->block, out->n);
	out->runs[out->n] = *run;
	out->runs[out->n++].t = f->base.t;
	out->n_insns++;
}

static bool is_stepped(struct flow *f, uint64_t ip)
{
	const struct seg *s = find_seg(f, ip);

	return s && s->kind == SEG_NOWHERE && s->reason == PTD_GAP_STEPPED && s->n_runs == 0;
}

/* The kernel lets user code go on: where it was interrupted, unless that was at the breakpoint of a
 * uprobe. The trampoline at the beginning of the page [uprobes] is returned to, and no more. */
static bool arrive_in_user(struct flow *f)
{
	const uint64_t probed = f->base.interrupted;
	const bool is_slot = f->ip % SLOT_SIZE == 0 &&
			     is_stepped(f, f->ip % SLOT_PAGE == 0 ? f->ip + SLOT_SIZE : f->ip);
	const struct seg *there;

	if (probed == f->ip)
		return false;
	there = probed ? find_seg(f, probed) : NULL;
	if (there && there->n_runs > 0 && is_slot)
		leave_slot(f, probed);
	else if (is_slot && f->ip % SLOT_PAGE == 0)
		return fail(f, PTD_GAP_STEPPED, f->ip);
	else if (there && there->n_runs > 0 && !is_slot)
		give_out_emulated(f, there);
	return false;
}

/* User code goes on at @ip, as the kernel lets it. */
static void enter_user(struct flow *f, uint64_t ip)
{
	f->entered = ip;
	f->slot = 0;
}

/*
 * Code
 */

/* Give out the instructions of @s from number @first on before number @end. There is room. */
static void give_out_from(struct flow *f, const struct seg *s, size_t first, size_t end)
{
	struct runlist *out = f->out;
	size_t at = 0;

	for (size_t i = 0; i < s->n_runs && at < end; at += s->runs[i++].n) {
		const size_t n = s->runs[i].n;
		const size_t skipped = first > at ? first - at : 0;
		const size_t left = end - at < n ? end - at : n;
		struct ptd_run *run = &out->runs[out->n];

		if (skipped >= left)
			continue;
		(void)engine_note_run(&f->base, s->runs[i].block, out->n);
		*run = s->runs[i];
		run->t = f->base.t;
		run->first += (uint16_t)skipped;
		run->n = (uint16_t)(left - skipped);
		out->n++;
		out->n_insns += run->n;
	}
}

/* The same, but for what was given out already. */
static void give_out(struct flow *f, const struct seg *s, size_t end)
{
	give_out_from(f, s, f->is_done, end);
}

/* Give out @s, which no packet decides, and go on behind it. */
static bool go_on(struct flow *f, const struct seg *s)
{
	size_t end = 0;

	for (size_t i = 0; i < s->n_runs; i++) {
		const struct ptd_run *run = &s->runs[i];
		const struct ptd_insn *last = run_last(run);

		end += run->n;
		if (last->iclass != PTD_INSN_JUMP && last->iclass != PTD_INSN_CALL)
			continue;
		if (engine_circle_closes(&f->base.circle, run_target(run))) {
			give_out(f, s, end);
			return fail(f, PTD_GAP_NO_PROGRESS, run_next(run));
		}
	}
	give_out(f, s, s->n_insns);
	push_calls(f, s, false);
	f->ip = s->to_ip[0];
	f->is_done = false;
	f->base.spin_insns += s->n_insns;
	return f->base.spin_insns > ENGINE_SPIN_MAX && fail(f, PTD_GAP_NO_PROGRESS, f->ip);
}

/* Packets make no sense, or are over, at @ip. */
static bool fail_at_packet(struct flow *f, enum walk_next next, uint64_t ip)
{
	(void)fail(f, f->base.walk.error, ip);
	f->failure.is_end = next == WALK_END;
	return false;
}

/* Packets do not say where the branch that @s ends with leads. */
static bool contradict(struct flow *f, const struct seg *s)
{
	const uint64_t ip = seg_ip(s, s->n_insns - 1u);
	enum walk_next next;

	give_out(f, s, s->n_insns);
	if (f->has_event)
		return fail(f, PTD_GAP_BAD_FLOW, ip);
	next = walk_ahead(&f->base.walk);
	return next == WALK_END || next == WALK_ERROR ? fail_at_packet(f, next, ip)
						      : fail(f, PTD_GAP_BAD_FLOW, ip);
}

/* Does the kernel return to user code at @ip, by what @s ends with? That code is of whatever thread
 * the kernel has switched to. */
static bool leaves_kernel(const struct seg *s, uint64_t ip)
{
	const struct ptd_run *last = &s->runs[s->n_runs - 1];

	return last->base >> 63 && !(ip >> 63) && run_last(last)->iclass == PTD_INSN_RETURN_FAR;
}

/* The packet at @offset has decided where @s leads: to @ip. Give it out. */
static bool decide_seg(struct flow *f, const struct seg *s, uint64_t ip, uint64_t offset)
{
	const bool is_behind = offset >= f->base.pause,
		   is_later = walk_now(&f->base.walk) > f->base.t;
	size_t first = f->is_done, n_before;
	bool asks;

	reset_spin(f);
	if (is_behind) {
		give_out(f, s, s->n_insns - 1u);
		first = f->is_done ? 1 : s->n_insns - 1u;
	}
	n_before = f->out->n;
	give_out_from(f, s, first, s->n_insns);
	if (s->kind != SEG_RETURN)
		push_calls(f, s, false);
	f->ip = ip;
	f->is_done = false;
	f->is_behind_branch = true;
	if (is_later)
		f->base.t = walk_now(&f->base.walk);
	asks = is_later && f->base.t >= f->base.limit;
	if (leaves_kernel(s, ip)) {
		f->base.walk.is_timed = false;
		asks = begin_stretch(f, ip) || asks;
		enter_user(f, ip);
	}
	if (is_behind) {
		f->base.ask = asks;
		engine_pass(&f->base, n_before, f->step);
		return true;
	}
	return asks && stop(f, ENGINE_ASK);
}

/* Where a branch leads that needs a TIP. */
static bool take_target(struct flow *f, const struct seg *s)
{
	const enum walk_next next = walk_ahead(&f->base.walk);
	const uint64_t offset = f->base.walk.offset;
	uint64_t ip;

	if (next != WALK_TIP || !walk_take_tip(&f->base.walk, &ip))
		return contradict(f, s);
	if (s->kind == SEG_RETURN) {
		push_calls(f, s, false);
		retstack_drop(&f->calls);
	}
	return decide_seg(f, s, ip, offset);
}

/*
 * Instructions that may go on without a packet
 */

static bool may_go_on(const struct seg *s)
{
	const struct ptd_run *run;
	const struct ptd_insn *last;

	if (s->kind != SEG_FAR)
		return false;
	run = &s->runs[s->n_runs - 1];
	last = run_last(run);
	return system_may_go_on(last->iclass, run->block->bytes + last->offset, last->size);
}

/*
 * Did the instruction that @s ends with go on to the next one? A TNT behind it says so. An
 * interrupt goes to the kernel, so a TIP to the user's code belongs to a later branch.
 */
static bool went_on(const struct flow *f, const struct seg *s, enum walk_next next)
{
	uint64_t ip = f->base.walk.last_ip;

	if (!may_go_on(s))
		return false;
	return f->tnt.n > 0 || next == WALK_TNT ||
	       (next == WALK_TIP &&
		run_last(&s->runs[s->n_runs - 1])->iclass == PTD_INSN_INTERRUPT &&
		packet_ip(&f->base.walk.packet, &ip) && !(ip >> 63));
}

/* Nothing is mapped where @s leads. */
static bool go_nowhere(struct flow *f, const struct seg *s)
{
	give_out(f, s, s->n_insns);
	return fail(f, s->reason, s->n_runs ? s->to_ip[0] : f->ip);
}

/* Give out one segment. @next: the packet that comes next, if it is needed. */
static bool take_segment(struct flow *f, enum walk_next next)
{
	struct seg *s = find_current_seg(f);
	struct seg_call *call;
	uint64_t offset = 0; /* of a TNT that is taken */
	uint64_t ip;

	if (!s)
		return true;
	if (s->kind == SEG_ON || went_on(f, s, next))
		return go_on(f, s);
	if (s->kind == SEG_NOWHERE)
		return go_nowhere(f, s);
	/* The CPU may have written a TIP behind a TNT whose bits, or the rest of them, are of
	 * branches behind the one that needs the TIP. */
	if (f->tnt.n == 0 && next == WALK_TNT) {
		offset = f->base.walk.offset;
		f->tnt.n = walk_take_tnt(&f->base.walk, &f->tnt.bits);
	}
	switch (s->kind) {
	case SEG_COND:
		return f->tnt.n > 0 ? decide_seg(f, s, s->to_ip[tnt_pop(&f->tnt)], offset)
				    : contradict(f, s);
	case SEG_RETURN:
		if (f->tnt.n == 0)
			return take_target(f, s);
		/* The calls on the way come before it. */
		push_calls(f, s, false);
		if (!tnt_pop(&f->tnt) || f->calls.depth == 0)
			return contradict(f, s);
		/* 32-bit code takes half of an address that 64-bit code has pushed. */
		ip = insn_wrap(s->mode, retstack_pop(&f->calls, &call));
		return decide_seg(f, s, ip, offset);
	default:
		return take_target(f, s);
	}
}

/*
 * Events
 *
 * Where in the code an event belongs, it says by an address, or by what an instruction can do: only
 * some switch packets off, change the page table or the VMCS, or write a PTW packet.
 */

static bool is_in_filter(const struct engine_config *config, uint64_t ip)
{
	bool filters = false, is_in = false;

	for (size_t i = 0; i < config->n_filters; i++) {
		const struct engine_filter *filter = &config->filters[i];
		const bool hits = filter->first <= ip && ip <= filter->last;

		if (filter->stops && hits)
			return false;
		filters = filters || !filter->stops;
		is_in = is_in || (!filter->stops && hits);
	}
	return is_in || !filters;
}

/* Can packets have been switched off by @insn of @run? @is_far: it is a far transfer. */
static bool can_disable(const struct flow *f, const struct ptd_run *run,
			const struct ptd_insn *insn, bool is_far)
{
	const uint64_t target = run_target(run);
	const bool has_ip = f->event.has_ip;

	switch (insn->iclass) {
	case PTD_INSN_OTHER:
		return !has_ip && system_sets_cr3(run->block->bytes + insn->offset, insn->size);
	case PTD_INSN_PTWRITE:
		return false;
	case PTD_INSN_JUMP:
	case PTD_INSN_CALL:
		if (is_far)
			return true;
		if (has_ip)
			return target == f->event.ip;
		/* SKL014: it is missing where a direct branch leaves the filter's range. */
		return f->base.config.n_filters > 0 && f->base.errata & ERRATUM_SKL014 &&
		       !is_in_filter(&f->base.config, target);
	case PTD_INSN_JUMP_COND:
	case PTD_INSN_RETURN:
		return has_ip;
	default:
		/* Without an address only far transfers leave what is traced. */
		return has_ip || is_far;
	}
}

/* Can instruction @i of @run, one of @s, have done what the event says? */
static bool can_do(const struct flow *f, const struct seg *s, const struct ptd_run *run, size_t i)
{
	const struct ptd_insn *insn = &run->block->insns[run->first + i];
	const uint8_t *bytes = run->block->bytes + insn->offset;
	const bool is_far =
	    run == &s->runs[s->n_runs - 1] && i + 1u == run->n && s->kind == SEG_FAR;

	switch (f->event.kind) {
	case WALK_DISABLED:
		return can_disable(f, run, insn, is_far);
	case WALK_PAGING:
		return is_far || system_sets_cr3(bytes, insn->size);
	case WALK_VMCS:
		return is_far || system_sets_vmcs(bytes, insn->size);
	default:
		return insn->iclass == PTD_INSN_PTWRITE;
	}
}

/* Return: the number of the instruction of @s that is the place of the event; s->n_insns: none. */
static size_t find_place(const struct flow *f, const struct seg *s)
{
	const struct walk_event *event = &f->event;
	size_t at = 0;

	for (size_t r = 0; r < s->n_runs; r++) {
		const struct ptd_run *run = &s->runs[r];

		for (size_t i = 0; i < run->n; i++, at++) {
			if (event->place == WALK_NEXT
				? can_do(f, s, run, i)
				: ptd_run_ip(run, i) == event->ip &&
				      (at > 0 || !f->is_done || event->place != WALK_BEFORE))
				return at;
		}
	}
	return s->n_insns;
}

/* Stand at the branch that @s ends with. It was given out, and its direct calls were pushed. */
static void stand_behind_branch(struct flow *f, const struct seg *s)
{
	struct ptd_run run = s->runs[s->n_runs - 1];
	const bool is_call = s->n_calls > 0 && run_last(&run)->iclass == PTD_INSN_CALL_INDIRECT;

	run.first += run.n - 1;
	run.n = 1;
	f->ip = seg_ip(s, s->n_insns - 1u);
	if (is_call)
		f->done.call = s->calls[s->n_calls - 1];
	f->done.run = run;
	f->done.seg = (struct seg){ .kind = s->kind,
				    .mode = s->mode,
				    .n_runs = 1,
				    .n_calls = is_call,
				    .n_insns = 1,
				    .ip = f->ip,
				    .to_ip = { s->to_ip[0], s->to_ip[1] },
				    .runs = &f->done.run,
				    .calls = &f->done.call };
	f->is_done = true;
}

/* Push the return addresses of the direct calls in @s before instruction @end. */
static void push_before(struct flow *f, const struct seg *s, size_t end)
{
	size_t at = 0, n_calls = 0;

	for (size_t i = 0; i < s->n_runs && n_calls < s->n_calls; i++) {
		const struct ptd_run *run = &s->runs[i];
		const struct ptd_insn *last = run_last(run);

		at += run->n;
		if (at > end || last->iclass != PTD_INSN_CALL ||
		    s->calls[n_calls].ret != run_next(run))
			continue;
		retstack_push(&f->calls, s->calls[n_calls++].ret, NULL);
	}
}

/* Stand at instruction @i of @s, before it, or behind it but not yet where it leads. */
static bool stand_at(struct flow *f, const struct seg *s, size_t i)
{
	const bool is_behind = f->event.place != WALK_BEFORE;
	const size_t end = i + is_behind;

	give_out(f, s, end);
	push_before(f, s, end);
	f->is_behind_branch = f->is_done = false;
	if (end < s->n_insns)
		f->ip = seg_ip(s, end);
	else if (s->kind == SEG_ON || s->kind == SEG_NOWHERE)
		f->ip = s->to_ip[0];
	else
		stand_behind_branch(f, s);
	if (is_behind && f->event.kind == WALK_MARK && f->event.mark == PTD_MARK_PTWRITE) {
		f->event.ip = seg_ip(s, i);
		f->event.has_ip = true;
	}
	return true;
}

/* Erratum BDM64: can the address of an abort be reached from here? If not, the packet of the branch
 * that led here was wrong: it led there. */
static void mend_bdm64(struct flow *f)
{
	struct engine_circle circle = {};
	uint64_t ip = f->ip, n = 0;
	struct seg *s;

	if (!(f->base.errata & ERRATUM_BDM64) || f->event.kind != WALK_TSX ||
	    !(f->event.value & PACKET_TSX_ABORT) || !f->is_behind_branch)
		return;
	do {
		s = find_seg(f, ip);
		if (!s || find_place(f, s) < s->n_insns)
			return;
		n += s->n_insns;
		ip = s->to_ip[0];
	} while (s->kind == SEG_ON && n < ENGINE_SPIN_MAX && !engine_circle_closes(&circle, ip));
	/* They are paid for, although none is given out. */
	if (engine_budget_take(f->base.config.budget, n, 0))
		f->ip = f->event.ip;
}

/* Erratum SKD022: what looks like an interruption of a VM entry is one that packets end at. */
static bool is_skd022(const struct flow *f, const struct seg *s, size_t i)
{
	const struct ptd_run *run = &s->runs[s->n_runs - 1];
	const struct ptd_insn *last = run_last(run);

	return f->base.errata & ERRATUM_SKD022 && f->event.kind == WALK_ASYNC_DISABLED &&
	       i + 1 == s->n_insns && last->iclass == PTD_INSN_VM &&
	       system_enters_vm(run->block->bytes + last->offset, last->size);
}

/* Return: whether packets are on again at @ip first. */
static bool comes_back_to(struct flow *f, uint64_t ip)
{
	struct peek peek = peek_from(&f->base.walk, f->base.walk.offset);
	uint64_t last_ip = f->base.walk.last_ip;
	struct packet packet;

	while (peek_next(&peek, &packet) && packet.type != PACKET_OVF) {
		if (packet.type == PACKET_PSB)
			last_ip = 0;
		if (packet_is_in(&packet, PACKET_BIT(FUP) | PACKET_BIT(TIP_PGE)))
			(void)packet_ip(&packet, &last_ip);
		if (packet.type == PACKET_TIP_PGE)
			return last_ip == ip;
	}
	return false;
}

/*
 * Packets are off behind the instruction that @s ends with, or behind a later one, to which it may
 * have gone on. It did if the event has an address of the user's code; or if the code leads on to
 * an instruction that can switch packets off, and execution comes back to what follows that.
 */
static bool went_on_to_event(struct flow *f, const struct seg *s)
{
	if (f->event.kind != WALK_DISABLED || !may_go_on(s))
		return false;
	if (f->event.has_ip)
		return !(f->event.ip >> 63) && f->event.ip != s->to_ip[0];
	for (size_t n = 0; n < LEADS_ON_MAX && (s->kind == SEG_ON || may_go_on(s)); n++) {
		size_t i;

		s = find_seg(f, s->to_ip[0]);
		i = s ? find_place(f, s) : 0;
		if (!s || (i < s->n_insns &&
			   comes_back_to(f, i + 1 < s->n_insns ? seg_ip(s, i + 1) : s->to_ip[0])))
			return s;
	}
	return false;
}

/* Erratum of Apollo Lake: the FUP of an interruption at the branch that @s ends with has the
 * address behind it, where a branch that packets must decide does not lead. As with the right
 * address, it is not known to have been executed. */
static bool is_behind_cause(const struct flow *f, const struct seg *s)
{
	return f->base.errata & ERRATUM_NLIP && f->event.place == WALK_BEFORE &&
	       (f->event.kind == WALK_ASYNC || f->event.kind == WALK_ASYNC_DISABLED) &&
	       (s->kind == SEG_RETURN || s->kind == SEG_INDIRECT || s->kind == SEG_FAR) &&
	       run_next(&s->runs[s->n_runs - 1]) == f->event.ip;
}

/* Go on to the place of the event. Return: whether it is reached. */
static bool go_to_event(struct flow *f)
{
	struct seg *s;
	size_t i;

	mend_bdm64(f);
	s = find_current_seg(f);
	if (!s)
		return false;
	i = find_place(f, s);
	if (i + 1 == s->n_insns && went_on_to_event(f, s))
		return go_on(f, s);
	if (i < s->n_insns) {
		if (is_skd022(f, s, i)) {
			f->event.kind = WALK_DISABLED;
			f->event.place = WALK_BEHIND;
			f->event.has_ip = f->event.to != 0;
			f->event.ip = f->event.to;
		}
		return stand_at(f, s, i);
	}
	if (is_behind_cause(f, s)) {
		f->event.ip = seg_ip(s, s->n_insns - 1u);
		return stand_at(f, s, s->n_insns - 1u);
	}
	/* It may also be reached where nothing is known. */
	if (f->event.place == WALK_BEFORE && s->n_insns == 0 && f->event.ip == f->ip)
		return true;
	if (s->kind == SEG_ON || may_go_on(s))
		return go_on(f, s);
	if (s->kind == SEG_NOWHERE) {
		if (f->event.place != WALK_BEFORE || f->event.ip != s->to_ip[0] || !s->n_runs)
			return go_nowhere(f, s);
		(void)go_on(f, s);
		return !f->has_failed;
	}
	/* No near branch leaves what is traced, but the packet that would say where it led is
	 * missing: real CPUs have written that. */
	if (f->event.kind == WALK_DISABLED && !f->event.has_ip && s->kind != SEG_COND)
		return stand_at(f, s, s->n_insns - 1u);
	return contradict(f, s);
}

/* Take the event that comes next. */
static bool fetch_event(struct flow *f)
{
	if (!walk_take_event(&f->base.walk, &f->event))
		return fail(f, f->base.walk.error, f->enabled ? f->ip : 0);
	f->has_event = true;
	f->is_told = false;
	translate_event(f);
	return false;
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

/* Execution goes on at @ip, which nothing leads to. */
static void begin_at(struct flow *f, uint64_t ip)
{
	f->enabled = true;
	f->ip = ip;
	f->is_done = f->is_behind_branch = false;
	f->tnt.n = f->calls.depth = 0;
}

/* The kernel's code is interrupted, too. */
static void note_interruption(struct flow *f, const struct walk_event *event)
{
	if (!(event->ip >> 63))
		f->base.interrupted = event->ip;
}

/* The PSB+ to join at is over: forget what it does not say. */
static bool deliver_join(struct flow *f, const struct walk_event *event)
{
	f->base.decoded += event->offset > f->base.from ? event->offset - f->base.from : 0;
	f->base.from = f->base.paid = event->offset;
	f->calls.depth = f->tnt.n = 0;
	f->is_behind_branch = f->is_done = f->is_told = false;
	f->base.when = (struct when){};
	f->base.bounds = (struct when_bounds){};
	f->base.bounds_t = f->base.limit = 0;
	f->base.walk.recovered = 0;
	f->base.interrupted = f->slot = f->entered = 0;
	view_put(f->base.view);
	f->base.view = NULL;
	f->base.ask = true;
	f->step->offset = event->value;
	return stop(f, ENGINE_JOIN);
}

/* Packets were lost from the event's time on; it may be later where they are on again. */
static bool deliver_overflow(struct flow *f, const struct walk_event *event)
{
	const bool stops = engine_report(&f->base, event, f->step);

	f->base.t = later_of(event->now, f->base.t);
	f->base.interrupted = 0;
	begin_at(f, event->ip);
	f->enabled = event->has_ip;
	if (f->enabled)
		(void)begin_stretch(f, f->ip);
	return stops;
}

static bool deliver_kind(struct flow *f, const struct walk_event *event)
{
	switch (event->kind) {
	case WALK_ENABLED:
		begin_at(f, event->ip);
		enter_user(f, event->ip);
		return begin_stretch(f, event->ip) && stop(f, ENGINE_ASK);
	case WALK_JOIN:
		return deliver_join(f, event);
	case WALK_OVERFLOW:
		return deliver_overflow(f, event);
	case WALK_NOTHING:
		return false;
	case WALK_DISABLED:
		f->enabled = f->is_done = false;
		f->base.interrupted = 0;
		break;
	case WALK_ASYNC_DISABLED:
		f->enabled = f->is_done = false;
		note_interruption(f, event);
		break;
	case WALK_ASYNC:
		f->ip = event->to;
		f->is_behind_branch = false;
		note_interruption(f, event);
		break;
	case WALK_MODE:
		f->has_mode = true;
		break;
	default:
		break;
	}
	return engine_report(&f->base, event, f->step);
}

/* Does no packet say before which instruction it was? The instructions that follow were decided by
 * earlier packets, and keep their time. A PSB+ that repeats nothing is no event to the user. */
static bool is_anywhere(const struct flow *f, const struct walk_event *event)
{
	switch (event->kind) {
	case WALK_MARK:
		return !event->has_ip && f->enabled;
	case WALK_NOTHING:
		return event->is_status;
	case WALK_JOIN:
		return true;
	default:
		return false;
	}
}

/* Deliver the event whose place is reached. */
static bool deliver_event(struct flow *f)
{
	const struct walk_event event = f->event;
	const bool keeps_time = is_anywhere(f, &event);
	const uint64_t before = f->base.t;
	bool is_later, stops;

	f->has_event = false;
	if (!makes_sense(f, &event))
		return fail(f, PTD_GAP_BAD_PACKET, 0);
	if (is_other_mode(f, &event))
		return fail(f, PTD_GAP_BAD_FLOW, f->ip);
	if (!keeps_time)
		f->base.t = later_of(event.t, before);
	/* A PSB+. */
	if (event.is_status)
		f->calls.depth = 0;
	reset_spin(f);
	stops = deliver_kind(f, &event);
	if (!keeps_time)
		f->base.t = later_of(event.now, f->base.t);
	if (f->base.pause < UINT64_MAX) {
		(void)walk_ahead(&f->base.walk);
		f->base.passed = engine_used(&f->base) > f->base.pause;
	}
	is_later = f->base.t > before && f->base.t >= f->base.limit;
	if (stops && f->step->stop == ENGINE_MARK && is_later)
		f->base.ask = true;
	return stops || (is_later && stop(f, ENGINE_ASK));
}

/* Return: the offset of the packet that is next, or that the event begins with. */
static uint64_t taken_of(const struct flow *f)
{
	if (!f->has_event)
		return f->base.walk.offset;
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
	const struct walk_note *note = &f->base.walk.notes[0];

	if (f->base.walk.n_notes == 0)
		return false;
	/* Too many wait only if the packets are broken. */
	if (f->has_failed || f->base.walk.n_notes == WALK_NOTES_MAX)
		return true;
	if (!at_event)
		return !note->interrupts && note->next < taken_of(f);
	if (note->interrupts)
		return (f->event.kind == WALK_ASYNC || f->event.kind == WALK_ASYNC_DISABLED) &&
		       !f->is_told && note->next == f->event.fup;
	return note->offset < f->event.end;
}

static bool deliver_note(struct flow *f)
{
	const struct walk_note note = walk_take_note(&f->base.walk);

	f->is_told = note.interrupts && note.kind == PTD_MARK_CFE;
	f->step->mark = note.kind;
	f->step->value = note.value;
	f->step->extra = note.extra;
	return stop(f, ENGINE_MARK);
}

/*
 * Errors
 */

/* Forget what is known of the code that led to where execution was. */
static void forget_code(struct flow *f)
{
	f->has_failed = f->is_done = f->is_behind_branch = f->has_mode = false;
	f->base.interrupted = f->slot = f->entered = 0;
	f->tnt.n = f->calls.depth = 0;
}

static void forget(struct engine *engine, uint64_t at)
{
	struct flow *f = (struct flow *)engine;

	forget_code(f);
	f->has_event = f->is_told = false;
	engine->walk.offset = at;
}

static bool go_on_at(struct engine *engine, const struct walk_point *point)
{
	struct flow *f = (struct flow *)engine;

	f->enabled = true;
	f->ip = point->ip;
	f->base.t = later_of(walk_now(&f->base.walk), f->base.t);
	(void)begin_stretch(f, point->ip);
	return true;
}

static bool sync_at(struct engine *engine, uint64_t at, bool has_ip)
{
	struct flow *f = (struct flow *)engine;

	f->enabled = has_ip;
	f->ip = f->base.walk.last_ip;
	f->base.mode = 64;
	(void)walk_ahead(&f->base.walk);
	if (walk_now(&f->base.walk))
		f->base.t = walk_now(&f->base.walk);
	return true;
}

/* Does the event that is next say where execution is? Not if that is where it failed, nor where
 * code of this mode cannot be. */
static bool is_at_event(const struct flow *f)
{
	const struct walk_event *event = &f->event;

	if (!f->has_event || !event->has_ip || !makes_sense(f, event) || event->ip == f->ip ||
	    event->ip != insn_wrap(f->base.mode, event->ip))
		return false;
	return event->place == WALK_BEFORE || (event->place == WALK_BEHIND && f->base.view &&
					       view_has_code(f->base.view, event->ip));
}

/* Packets and code do not go on. */
static bool give_up(struct flow *f)
{
	const struct failure failure = f->failure;

	if (failure.is_end) {
		engine_end(&f->base, f->step);
		return true;
	}
	if (!is_at_event(f)) {
		(void)walk_ahead(&f->base.walk);
		engine_lose(&f->base, failure.reason, failure.ip, f->step);
		return true;
	}
	/* Go on where the event says that execution is. No byte is lost. */
	forget_code(f);
	f->ip = f->event.ip;
	f->base.ask = true;
	(void)begin_stretch(f, f->ip);
	reset_spin(f);
	f->step->reason = failure.reason;
	f->step->offset = engine_used(&f->base);
	engine_stop(&f->base, ENGINE_GAP, failure.ip, f->step);
	return true;
}

/* Do one thing. */
static bool do_step(struct flow *f)
{
	enum walk_next next = WALK_TNT;

	if (f->base.passed) {
		engine_pass(&f->base, f->out->n, f->step);
		return true;
	}
	if (is_note_due(f, false))
		return deliver_note(f);
	if (f->has_failed)
		return give_up(f);
	if (f->entered && f->enabled && f->ip == f->entered) {
		f->entered = 0;
		return arrive_in_user(f);
	}
	f->entered = 0;
	if (f->has_event) {
		if (f->enabled && f->event.place != WALK_HERE) {
			if (!go_to_event(f))
				return false;
			/* It is reached once. */
			f->event.place = WALK_HERE;
		}
		return is_note_due(f, true) ? deliver_note(f) : deliver_event(f);
	}
	if (f->tnt.n == 0)
		next = walk_ahead(&f->base.walk);
	if (next == WALK_EVENT)
		return fetch_event(f);
	if (next == WALK_END || next == WALK_ERROR)
		return fail_at_packet(f, next, f->enabled ? f->ip : 0);
	if (f->enabled)
		return take_segment(f, next);
	/* What waited for it has come to nothing. */
	f->base.walk.has_waiting = false;
	return fail(f, PTD_GAP_BAD_FLOW, 0);
}

static void go(struct engine *engine, struct runlist *out, struct engine_step *ret_step)
{
	struct flow *f = (struct flow *)engine;
	bool stops = false;

	f->out = out;
	f->step = ret_step;
	while (!stops && f->base.error == 0) {
		const uint64_t n_before = out->n_insns;

		if (out->n + 2 * SEG_RUNS_MAX > out->n_max) {
			(void)stop(f, ENGINE_FULL);
			return;
		}
		if (is_hot(f))
			run_hot(f);
		if (f->base.error == 0)
			stops = do_step(f);
		if (!engine_can_pay(&f->base, out->n_insns - n_before) && !f->has_failed)
			(void)fail(f, PTD_GAP_NO_PROGRESS, f->ip);
	}
}

/*
 * The engine
 */

/* The caller may ask for the offset: it is behind the event that comes next. */
static void look_ahead(struct engine *engine)
{
	struct flow *f = (struct flow *)engine;

	if (f->tnt.n == 0 && !f->has_event && !f->has_failed &&
	    walk_ahead(&f->base.walk) == WALK_EVENT)
		(void)fetch_event(f);
}

static uint64_t used(const struct engine *engine)
{
	return walk_used(&engine->walk);
}

/* What differs between flows that stand at the same joint. */
static void get_joint(const struct engine *engine, struct engine_joint *ret_joint)
{
	const struct flow *f = (const struct flow *)engine;
	const struct walk *walk = &engine->walk;
	uint64_t *words = ret_joint->words;
	const uint64_t known[] = { walk->offset,
				   walk->last_ip,
				   walk->reader.item_size,
				   walk->is_timed,
				   walk->leads,
				   walk->is_status,
				   walk->has_waiting,
				   walk->fup.n + walk->tip.n + walk->psb.n + walk->ready.n,
				   walk->n_notes,
				   walk->follows_mode,
				   f->enabled,
				   f->enabled ? f->ip : 0,
				   engine->t,
				   engine->mode,
				   f->tnt.n,
				   f->has_mode,
				   f->has_event,
				   f->has_failed,
				   engine->ended };

	static_assert(sizeof(known) + sizeof(struct tsc) + sizeof(struct walk_state) +
			      sizeof(struct engine_news) <=
			  sizeof(struct engine_joint),
		      "it has room");
	memset(ret_joint, 0, sizeof(*ret_joint));
	words = mempcpy(words, known, sizeof(known));
	words = mempcpy(words, &walk->tsc, sizeof(walk->tsc));
	words = mempcpy(words, &walk->state, sizeof(walk->state));
	memcpy(words, &engine->news, sizeof(engine->news));
}

const struct engine_ops engine_flow = {
	.name = "flow",
	.size = sizeof(struct flow),
	.go = go,
	.look_ahead = look_ahead,
	.used = used,
	.forget = forget,
	.go_on_at = go_on_at,
	.sync_at = sync_at,
	.get_joint = get_joint,
};
