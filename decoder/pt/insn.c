/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The engine over libipt's instruction decoder, which is the reference for engine flow. libipt
 * decides which instructions were executed. Of our own it takes the mapped code (view.h), the cache
 * of blocks, and the packets' boundaries: libipt reads a private copy of the packets (ipt_copy.h).
 * A walk of ours beside libipt says when code ran and where to go on behind an error (ipt_walk.h).
 *
 * Where libipt 2.0.5 knows less than engine flow, this engine says less. It does not report what
 * event trace, PEBS records, triggers and power events say (ptd_mark_kind CFE, EVD, PEBS, TRIG,
 * MWAIT, PWRE, EXSTOP and PWRX).
 *
 * This is the only file that knows <intel-pt.h>.
 */

#include "decoder/pt/engine.h"

#include <assert.h>
#include <errno.h>
#include <intel-pt.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/pt/errata.h"
#include "decoder/pt/ipt_copy.h"
#include "decoder/pt/ipt_walk.h"
#include "decoder/pt/news.h"
#include "decoder/pt/runlist.h"
#include "decoder/pt/view.h"
#include "decoder/pt/walk.h"
#include "decoder/x86/unknown.h"
#include "util/psb.h"

/*
 * Where the instruction that was given out last leads. libipt does not promise that it goes there:
 * on bytes that are no code its lengths differ from ours, and broken packets lead it astray.
 */
struct course {
	bool is_known; /* else the bytes do not say, or the caller was told of a break */
	uint8_t iclass;
	uint64_t ip;           /* the instruction's */
	uint64_t next, target; /* the same, but for a conditional branch */
};

struct insn_engine {
	struct engine engine;
	struct engine_config config;
	struct ipt_copy copy;
	struct pt_insn_decoder *decoder;
	struct pt_image *image; /* which has no sections: libipt asks for all code */
	struct view *view;      /* NULL: nothing is mapped */
	struct ipt_walk times;  /* which goes as far as times are asked for */
	struct ipt_walk walk;   /* which follows where libipt fails */
	uint8_t mode;           /* of the code, as libipt said last: 16, 32 or 64 */

	int status; /* libipt's, of the last call */
	int error;  /* negative errno: no memory, or the span cannot be read */
	bool started, ended;
	bool ask; /* the caller must say whose code this is */
	uint64_t t;
	struct when_bounds bounds; /* of the stretch of code */
	uint64_t bounds_t;         /* while this is @t */
	bool is_user;              /* and where it begins */
	uint64_t from;             /* offset from which bytes are not accounted for */
	uint64_t decoded;          /* bytes */
	uint64_t pause;            /* offset to stop at */
	bool passed;               /* packets behind it report what follows */
	uint64_t ip;               /* of the instruction that an error hit */
	struct course course;
	uint64_t last; /* the last address of the mapping that the last run is in */

	struct news news;

	uint64_t paid;        /* offset up to which packets were paid with instructions */
	uint64_t spin_offset; /* instructions taken since this offset was reached */
	uint64_t spin_insns;
	uint64_t circle_ip; /* where one of the last direct branches led, and how many there were */
	uint64_t n_direct;  /* since packets were last asked where to go */
};

/* Return: the offset up to which libipt has used up packets. */
static uint64_t offset_of(const struct insn_engine *e)
{
	uint64_t offset;

	if (pt_insn_get_offset(e->decoder, &offset) < 0 || offset < e->from)
		return e->from;
	return offset;
}

static bool stop(const struct insn_engine *e, enum engine_stop why, struct engine_step *ret_step)
{
	ret_step->stop = why;
	ret_step->t = e->t;
	return true;
}

/*
 * Code
 */

/* Where code of @mode is that libipt, which reckons with 64 bits, says to be at @ip. */
static uint64_t cut(uint8_t mode, uint64_t ip)
{
	return mode == 64 ? ip : (uint32_t)ip;
}

/*
 * Branches that libipt 2.0.5 does not know as branches: it would go on behind them, and take the
 * packet with their target for that of the next branch there. So it is shown an older instruction
 * of the same length in their place, which takes the same packets: an iret for a return of FRED, an
 * indirect jump for a JMPABS.
 */
static void disguise(uint8_t *code, size_t size)
{
	static const uint8_t iret[] = { 0xcf }, jump[] = { 0xff, 0xe0 };
	const uint8_t *older = jump;
	size_t older_size = sizeof(jump);
	struct unknown insn;

	if (!unknown_branch(64, code, size, &insn))
		return;
	if (insn.class == PTD_INSN_RETURN_FAR) {
		older = iret;
		older_size = sizeof(iret);
	}
	memset(code, 0x2e, insn.size); /* a prefix that means nothing in 64-bit code */
	memcpy(code + insn.size - older_size, older, older_size);
}

/* Give libipt the code at @ip. A branch of 32-bit code that goes beyond either end of its 4 GiB
 * leads libipt to where nothing is mapped: what is meant is given to it then. */
static int read_code(uint8_t *buffer, size_t size, const struct pt_asid *asid, uint64_t ip,
		     void *context)
{
	struct insn_engine *e = context;
	const struct extent *extent;
	const uint8_t *bytes;
	uint64_t offset, last;

	(void)asid;
	if (!e->view)
		return -pte_nomap;
	if (view_find_code(e->view, ip, &extent, &offset, &last) != 0) {
		ip = (uint32_t)ip;
		if (view_find_code(e->view, ip, &extent, &offset, &last) != 0)
			return -pte_nomap;
	}
	if (size > last - ip)
		size = (size_t)(last - ip) + 1;
	bytes = object_bytes(extent->object, offset, size);
	if (!bytes)
		return -pte_nomap;
	memcpy(buffer, bytes, size);
	if (e->mode == 64)
		disguise(buffer, size);
	return (int)size;
}

/* Why there is no code at the address where libipt stopped. */
static enum ptd_gap_reason why_no_code(struct insn_engine *e)
{
	const struct extent *extent;
	uint64_t offset, last;
	int r;

	/* Without an address it means that packets do not say where execution is. */
	if (!e->ip)
		return PTD_GAP_BAD_FLOW;
	r = e->view ? view_find_code(e->view, e->ip, &extent, &offset, &last) : 0;
	return r > 0 ? (enum ptd_gap_reason)(r - 1) : PTD_GAP_NO_CODE;
}

/*
 * Runs
 */

/* Return: whether the last run leads to @ip. */
static bool leads_to(const struct course *course, uint64_t ip)
{
	return !course->is_known || ip == course->next || ip == course->target;
}

/* Return: whether the last instruction leads only behind itself. */
static bool is_straight(const struct course *course)
{
	return course->is_known &&
	       (course->iclass == PTD_INSN_OTHER || course->iclass == PTD_INSN_PTWRITE);
}

/* Return: whether the last instruction is a direct branch. */
static bool is_direct(const struct course *course)
{
	return course->is_known &&
	       (course->iclass == PTD_INSN_JUMP || course->iclass == PTD_INSN_CALL);
}

/* Note where the last run leads. */
static void note_course(struct insn_engine *e, const struct ptd_run *run)
{
	const struct ptd_block *block = run->block;
	const struct ptd_insn *last = &block->insns[run->first + run->n - 1];
	const uint64_t ip = run->base + last->offset, next = cut(block->mode, ip + last->size),
		       target = cut(block->mode, run->base + (uint64_t)block->target);
	struct course course = { .iclass = last->iclass, .ip = ip, .next = next, .target = next };

	switch (last->iclass) {
	case PTD_INSN_OTHER:
	case PTD_INSN_PTWRITE:
		course.is_known = true;
		break;
	case PTD_INSN_JUMP_COND:
		course.is_known = true;
		course.target = target;
		break;
	case PTD_INSN_JUMP:
	case PTD_INSN_CALL:
		/* A direct far one, which 64-bit code has not, bears no target. */
		course.is_known = block->mode == 64 || target != next;
		course.next = course.target = target;
		break;
	default:
		break;
	}
	e->course = course;
	e->ip = next;
}

/* Return: whether @ip is the next instruction of the block of the last run, which it joins. */
static bool extend(const struct insn_engine *e, struct runlist *out, uint64_t ip)
{
	struct ptd_run *run = out->n > 0 ? &out->runs[out->n - 1] : NULL;
	const struct ptd_insn *insn;
	size_t next;

	if (!run)
		return false;
	next = (size_t)run->first + run->n;
	insn = &run->block->insns[next];
	if (next >= run->block->n_insns || run->base + insn->offset != ip || ip > e->last ||
	    e->last - ip < insn->size - 1u)
		return false;
	run->n++;
	return true;
}

/* Begin a run with the instruction at @ip. Return: 0, or what is libipt's status for that. */
static int begin_run(struct insn_engine *e, struct runlist *out, uint64_t ip,
		     const struct pt_insn *insn)
{
	const struct extent *extent;
	const struct ptd_block *block;
	uint64_t offset;
	int r;

	if (!e->view || view_find_code(e->view, ip, &extent, &offset, &e->last) != 0)
		return -pte_nomap;
	if (insn->truncated)
		r = cache_get_stitched(e->config.cache, extent->object, offset, e->mode, insn->raw,
				       insn->size, &block);
	else
		r = cache_get(e->config.cache, extent->object, offset, e->mode, &block);
	if (r == -ENOMEM)
		e->error = r;
	if (r < 0)
		return -pte_bad_insn;
	out->runs[out->n++] = (struct ptd_run){
		.block = block,
		.base = ip,
		.t = e->t,
		.n = 1,
		.early = extent->kind == MAPPING_EARLY,
	};
	return 0;
}

/*
 * Give out an instruction that libipt says was executed.
 *
 * Return: 0, or what is libipt's status if it cannot have been.
 */
static int emit(struct insn_engine *e, struct runlist *out, const struct pt_insn *insn)
{
	const uint64_t ip = cut(e->mode, insn->ip);
	int r = 0;

	e->ip = ip;
	if (!leads_to(&e->course, ip))
		return -pte_bad_query;
	if (insn->truncated || !extend(e, out, ip))
		r = begin_run(e, out, ip, insn);
	if (r < 0)
		return r;
	out->n_insns++;
	note_course(e, &out->runs[out->n - 1]);
	return 0;
}

static uint8_t bits_of(enum pt_exec_mode mode)
{
	return mode == ptem_16bit ? 16 : mode == ptem_32bit ? 32 : 64;
}

/* Let libipt take an instruction. Return: its status. */
static int take_insn(struct insn_engine *e, struct runlist *out)
{
	struct pt_insn insn = { .iclass = ptic_error }; /* libipt may leave it as it is */
	const int status = pt_insn_next(e->decoder, &insn, sizeof(insn));
	int r = 0;

	e->mode = bits_of(insn.mode);
	e->ip = insn.ip;
	/* On an error the instruction is given too, if it was executed: then it has a class. */
	if (insn.iclass != ptic_error)
		r = emit(e, out, &insn);
	return r < 0 ? r : status;
}

/*
 * Events
 */

/* @event's own address, if it has one, is @ip. */
static bool mark(const struct insn_engine *e, const struct pt_event *event, enum ptd_mark_kind kind,
		 uint64_t ip, uint64_t value, uint64_t extra, struct engine_step *ret_step)
{
	ret_step->mark = kind;
	ret_step->ip = event->ip_suppressed ? 0 : ip;
	ret_step->value = value;
	ret_step->extra = extra;
	return stop(e, ENGINE_MARK, ret_step);
}

/* A stretch of code begins at @ip, by packets that end at @offset. */
static void begin_stretch(struct insn_engine *e, uint64_t offset, uint64_t ip)
{
	if (!e->config.has_threads)
		return;
	e->bounds = ipt_walk_find(&e->times, offset, ip);
	e->bounds_t = e->t;
	e->is_user = !(ip >> 63);
}

static bool take_overflow(struct insn_engine *e, const struct pt_event *event, uint64_t end,
			  struct engine_step *ret_step)
{
	e->course.is_known = false;
	/* What was lost may have been a switch. */
	e->ask = true;
	if (!event->ip_suppressed)
		begin_stretch(e, end, event->variant.overflow.ip);
	ret_step->ip = event->ip_suppressed ? 0 : event->variant.overflow.ip;
	ret_step->reason = PTD_GAP_OVERFLOW;
	/* No byte is lost but what the CPU did not write. */
	ret_step->offset = offset_of(e);
	return stop(e, ENGINE_GAP, ret_step);
}

static bool take_tsx(struct insn_engine *e, const struct pt_event *event,
		     struct engine_step *ret_step)
{
	enum ptd_tsx what;

	return news_take_tsx(&e->news, event->variant.tsx.speculative, event->variant.tsx.aborted,
			     &what) &&
	       mark(e, event, PTD_MARK_TSX, event->variant.tsx.ip, what, 0, ret_step);
}

/* Another page table: it may be another process's. */
static bool take_paging(struct insn_engine *e, const struct pt_event *event, uint64_t cr3,
			uint64_t non_root, uint64_t ip, struct engine_step *ret_step)
{
	if (!news_take_paging(&e->news, cr3, non_root))
		return stop(e, ENGINE_ASK, ret_step);
	e->ask = true;
	return mark(e, event, PTD_MARK_PAGING, ip, cr3, non_root, ret_step);
}

static bool take_vmcs(struct insn_engine *e, const struct pt_event *event, uint64_t base,
		      uint64_t ip, struct engine_step *ret_step)
{
	return news_take(&e->news.vmcs, base) &&
	       mark(e, event, PTD_MARK_VMCS, ip, base, 0, ret_step);
}

static bool take_cbr(struct insn_engine *e, const struct pt_event *event,
		     struct engine_step *ret_step)
{
	const uint64_t ratio = event->variant.cbr.ratio;

	return news_take(&e->news.cbr, ratio) &&
	       mark(e, event, PTD_MARK_CBR, 0, ratio, 0, ret_step);
}

/* The code before @ip was interrupted. */
static bool take_async(struct insn_engine *e, uint64_t ip, struct engine_step *ret_step)
{
	e->course.is_known = false;
	ret_step->mark = PTD_MARK_ASYNC;
	ret_step->ip = ip;
	return stop(e, ENGINE_MARK, ret_step);
}

static bool take_enabled(struct insn_engine *e, const struct pt_event *event, uint64_t end,
			 struct engine_step *ret_step)
{
	/* A PSB+ says it again. */
	if (!event->status_update)
		begin_stretch(e, end, event->variant.enabled.ip);
	return stop(e, ENGINE_ASK, ret_step);
}

/* @end: offset up to which packets had been used up. Return: whether the caller must see it. */
static bool take_kind(struct insn_engine *e, const struct pt_event *event, uint64_t end,
		      struct engine_step *ret_step)
{
	switch (event->type) {
	case ptev_async_disabled:
		return take_async(e, event->variant.async_disabled.at, ret_step);
	case ptev_async_branch:
		return take_async(e, event->variant.async_branch.from, ret_step);
	case ptev_disabled:
		e->course.is_known = false;
		return mark(e, event, PTD_MARK_OFF, event->variant.disabled.ip, 0, 0, ret_step);
	case ptev_exec_mode:
		e->mode = bits_of(event->variant.exec_mode.mode);
		return false;
	case ptev_stop:
		return mark(e, event, PTD_MARK_STOP, 0, 0, 0, ret_step);
	case ptev_overflow:
		return take_overflow(e, event, end, ret_step);
	case ptev_enabled:
		return take_enabled(e, event, end, ret_step);
	case ptev_tick:
		return stop(e, ENGINE_ASK, ret_step);
	case ptev_paging:
		return take_paging(e, event, event->variant.paging.cr3,
				   event->variant.paging.non_root, 0, ret_step);
	case ptev_async_paging:
		return take_paging(e, event, event->variant.async_paging.cr3,
				   event->variant.async_paging.non_root,
				   event->variant.async_paging.ip, ret_step);
	case ptev_vmcs:
		return take_vmcs(e, event, event->variant.vmcs.base, 0, ret_step);
	case ptev_async_vmcs:
		return take_vmcs(e, event, event->variant.async_vmcs.base,
				 event->variant.async_vmcs.ip, ret_step);
	case ptev_tsx:
		return take_tsx(e, event, ret_step);
	case ptev_cbr:
		return take_cbr(e, event, ret_step);
	case ptev_ptwrite:
		return mark(e, event, PTD_MARK_PTWRITE, event->variant.ptwrite.ip,
			    event->variant.ptwrite.payload, event->variant.ptwrite.size, ret_step);
	default:
		return false;
	}
}

/* Take the event that is pending. Return: whether @ret_step is one that the caller must see; if
 * not, see @status. */
static bool take_event(struct insn_engine *e, struct engine_step *ret_step)
{
	struct pt_event event = {};
	const uint64_t end = offset_of(e);
	bool is_later;

	e->status = pt_insn_event(e->decoder, &event, sizeof(event));
	if (e->status < 0)
		return false;
	/* An event that waited for its instruction bears the time at which its packet was read. */
	is_later = event.has_tsc && event.tsc > e->t;
	if (is_later)
		e->t = event.tsc;
	if (take_kind(e, &event, end, ret_step)) {
		if (ret_step->stop == ENGINE_MARK && is_later)
			e->ask = true;
		return true;
	}
	/* The time in a PSB+ makes no tick, but comes with the state that it repeats. */
	return is_later && stop(e, ENGINE_ASK, ret_step);
}

/*
 * Errors
 */

/* Why libipt could not go on. */
static enum ptd_gap_reason reason_of(struct insn_engine *e, int status)
{
	switch (-status) {
	case pte_nomap:
		return why_no_code(e);
	case pte_overflow:
		return PTD_GAP_OVERFLOW;
	case pte_bad_opc:
	case pte_bad_packet:
	case pte_bad_context:
	/* It has room for some events of one place; more are there only if packets are broken. */
	case pte_nomem:
		return PTD_GAP_BAD_PACKET;
	case pte_eos:
		return PTD_GAP_CUT;
	default:
		return PTD_GAP_BAD_FLOW;
	}
}

/*
 * Go to the next PSB from @from on. A PSB+ that is itself broken is passed over.
 *
 * Return: its offset; the size of the span if there is none.
 */
static uint64_t sync_forward(struct insn_engine *e, uint64_t from)
{
	uint64_t offset;
	bool has_ip;

	for (; walk_sync(&e->walk.walk, from, &offset, &has_ip); from = offset + PSB_SIZE) {
		e->error = ipt_copy_begin(&e->copy, offset, NULL, 0);
		if (e->error < 0)
			return offset;
		e->status = pt_insn_sync_set(e->decoder, offset);
		if (e->status < 0)
			continue;
		e->ask = true;
		(void)pt_insn_time(e->decoder, &e->t, NULL, NULL);
		return offset;
	}
	e->ended = true;
	return e->config.pt.size;
}

/* Go on behind @point: a PSB+ that says what is known there takes the place of the bytes before it.
 * Return: whether that could be done. */
static bool sync_at(struct insn_engine *e, const struct walk_point *point)
{
	const struct tsc *tsc = &e->walk.walk.tsc;
	uint8_t psb[IPT_WALK_PSB_MAX];
	const size_t size = ipt_walk_make_psb(&e->walk.walk, point->ip, psb);

	if (size > point->offset)
		return false;
	e->error = ipt_copy_begin(&e->copy, point->offset, psb, size);
	if (e->error < 0)
		return true;
	e->status = pt_insn_sync_set(e->decoder, point->offset - size);
	if (e->status < 0)
		return false;
	if (tsc->has_tsc && tsc->now > e->t)
		e->t = tsc->now;
	if (e->config.has_threads)
		e->bounds = ipt_walk_find_here(&e->walk, point->ip);
	e->bounds_t = e->t;
	e->is_user = !(point->ip >> 63);
	e->ask = true;
	return true;
}

/*
 * Find a packet behind @lost_from, but before the next PSB, that says where execution is. One that
 * leads to where there is no code is of use only if that may be another thread's.
 *
 * Return: whether decoding goes on at @ret_offset.
 */
static bool recover(struct insn_engine *e, uint64_t lost_from, uint64_t *ret_offset)
{
	const struct walk_state *state = &e->walk.walk.state;
	struct walk_point point;
	bool asks = false;

	ipt_walk_follow(&e->walk, lost_from);
	while (walk_recover(&e->walk.walk, &point)) {
		asks = asks || point.asks ||
		       (state->has_cr3 && news_is_paging(&e->news, state->cr3, state->non_root));
		if ((asks || (e->view && view_has_code(e->view, point.ip))) && sync_at(e, &point)) {
			*ret_offset = point.offset;
			return true;
		}
	}
	return false;
}

/* Go on as soon as it is certain where execution is; what lies between that and @lost_from is a
 * gap. */
static void resync(struct insn_engine *e, enum ptd_gap_reason reason, uint64_t lost_from,
		   struct engine_step *ret_step)
{
	*ret_step = (struct engine_step){
		.stop = ENGINE_GAP,
		.t = e->t,
		.ip = e->ip,
		.reason = reason,
		.offset = lost_from,
	};
	e->course.is_known = false;
	e->spin_insns = e->n_direct = 0;
	e->bounds = (struct when_bounds){};
	if (!e->started || !recover(e, lost_from, &e->from))
		e->from = sync_forward(e, lost_from);
	e->started = true;
	if (e->from < lost_from)
		e->from = lost_from;
	e->ip = 0;
	ret_step->n_bytes = e->from - lost_from;
}

/* libipt cannot go on, or packets are over. */
static int fail(struct insn_engine *e, struct engine_step *ret_step)
{
	const uint64_t lost_from = offset_of(e);

	if (e->error < 0)
		return e->error;
	e->decoded += lost_from - e->from;
	if (e->status == -pte_eos && lost_from >= e->config.pt.size) {
		e->ended = true;
		(void)stop(e, ENGINE_END, ret_step);
		return 0;
	}
	resync(e, reason_of(e, e->status), lost_from, ret_step);
	return e->error;
}

/* Return: whether code has been running for too long without using up packets. */
static bool spins(struct insn_engine *e)
{
	const uint64_t offset = offset_of(e);
	const uint64_t n_bytes = offset > e->paid ? offset - e->paid : 0;

	if (offset != e->spin_offset) {
		e->spin_offset = offset;
		e->spin_insns = 0;
	}
	e->paid += n_bytes;
	return !engine_budget_take(e->config.budget, 1, n_bytes) ||
	       ++e->spin_insns > ENGINE_SPIN_MAX;
}

/*
 * Return: whether the code leads back to where it has been since packets were last asked for a way:
 * then it does so for ever. Only each branch whose number is a power of two is kept in mind, so
 * that this takes a few rounds.
 */
static bool circles(struct insn_engine *e)
{
	if (is_straight(&e->course))
		return false;
	if (!is_direct(&e->course)) {
		e->n_direct = 0;
		return false;
	}
	if (e->n_direct > 0 && e->course.target == e->circle_ip)
		return true;
	if ((e->n_direct & (e->n_direct - 1)) == 0)
		e->circle_ip = e->course.target;
	e->n_direct++;
	return false;
}

/*
 * Steps
 */

/*
 * May the kernel have returned to the user's code, by a packet behind @offset? Then the caller must
 * say whose that is, before it is looked at.
 */
static bool leaves_kernel(struct insn_engine *e, uint64_t offset)
{
	if (!e->config.has_threads || !(e->course.ip >> 63) ||
	    e->course.iclass != PTD_INSN_RETURN_FAR)
		return false;
	e->bounds = ipt_walk_find_tip(&e->times, offset);
	e->bounds_t = e->t;
	e->is_user = true;
	return true;
}

/* What packets behind the offset to pause at report begins with run @n_before. */
static bool pass(struct insn_engine *e, size_t n_before, struct engine_step *ret_step)
{
	e->passed = false;
	e->pause = UINT64_MAX;
	ret_step->passed = true;
	ret_step->n_before = n_before;
	return stop(e, ENGINE_ASK, ret_step);
}

/* Return: whether the packet at @offset reports branches, and libipt has used it up. If it has not,
 * an earlier one reported the last branch, and what follows may be an event. */
static bool has_used_branch(struct insn_engine *e, uint64_t offset)
{
	const enum packet_type type = ipt_copy_packet(&e->copy, offset).type;

	return (type == PACKET_TNT || type == PACKET_TIP) && offset_of(e) != offset;
}

/* Let the last instruction be a run of its own. Return: the index of that. */
static size_t cut_last(struct runlist *out)
{
	struct ptd_run *last = &out->runs[out->n - 1];

	if (last->n == 1 || out->n == out->n_max)
		return out->n - 1;
	last->n--;
	last[1] = *last;
	last[1].first = (uint16_t)(last->first + last->n);
	last[1].n = 1;
	return out->n++;
}

/* Take an instruction. Return: whether @ret_step is filled in; if not, see @status. */
static bool step(struct insn_engine *e, struct runlist *out, struct engine_step *ret_step)
{
	const uint64_t offset = offset_of(e), n_before = out->n_insns;
	bool stops;

	e->status = take_insn(e, out);
	if (out->n_insns == n_before)
		return false;
	if (e->status < 0) {
		/* If it is a branch, that is what the packets do not fit; not what lies behind. */
		if (!is_straight(&e->course) && reason_of(e, e->status) == PTD_GAP_BAD_FLOW)
			e->ip = e->course.ip;
		return false;
	}
	stops = leaves_kernel(e, offset) && stop(e, ENGINE_ASK, ret_step);
	if (offset >= e->pause && has_used_branch(e, offset))
		stops = pass(e, cut_last(out), ret_step);
	if (stops || (!circles(e) && !spins(e)))
		return stops;
	e->decoded += offset_of(e) - e->from;
	resync(e, PTD_GAP_NO_PROGRESS, offset_of(e), ret_step);
	return true;
}

/* Go on until something stops it. */
static int go(struct insn_engine *e, struct runlist *out, struct engine_step *ret_step)
{
	while (!e->ended) {
		if (e->passed) {
			(void)pass(e, out->n, ret_step);
			return 0;
		}
		if (e->status < 0)
			return fail(e, ret_step);
		if (e->status & pts_event_pending) {
			e->passed = offset_of(e) > e->pause;
			e->n_direct = 0;
			if (take_event(e, ret_step))
				return 0;
		} else if (e->status & pts_eos) {
			e->status = -pte_eos;
		} else if (out->n + ENGINE_STEP_RUNS_MAX > out->n_max) {
			(void)stop(e, ENGINE_FULL, ret_step);
			return 0;
		} else if (step(e, out, ret_step)) {
			return e->error;
		}
	}
	(void)stop(e, ENGINE_END, ret_step);
	return 0;
}

/* Between which times what follows ran. */
static void tell_bounds(const struct insn_engine *e, struct engine_step *ret_step)
{
	const bool holds = e->config.has_threads && e->bounds_t == e->t;

	ret_step->t_from = holds && e->bounds.from ? e->bounds.from : e->t;
	ret_step->t_to = holds && e->bounds.to ? e->bounds.to : e->t;
	ret_step->is_user = holds && e->is_user;
}

/*
 * The engine
 */

static int make_step(struct insn_engine *e, struct ptd_run *runs, size_t n_runs_max,
		     struct engine_step *ret_step)
{
	struct runlist out = { .runs = runs, .n_max = n_runs_max };
	int r = 0;

	assert(n_runs_max >= ENGINE_STEP_RUNS_MAX);
	*ret_step = (struct engine_step){};
	if (!e->ended && !e->started) {
		resync(e, PTD_GAP_NO_SYNC, 0, ret_step);
		if (e->error < 0)
			return e->error;
		if (e->ended)
			ret_step->reason = PTD_GAP_EMPTY;
		if (ret_step->n_bytes > 0)
			return 0;
	}
	if (e->ask) {
		e->ask = false;
		(void)stop(e, ENGINE_ASK, ret_step);
	} else {
		r = go(e, &out, ret_step);
	}
	ret_step->n_runs = out.n;
	if (r == 0 && ret_step->stop == ENGINE_ASK)
		tell_bounds(e, ret_step);
	return r;
}

static int next(struct engine *engine, struct ptd_run *runs, size_t n_runs_max,
		struct engine_step *ret_step)
{
	struct insn_engine *e = (struct insn_engine *)engine;
	const int r = make_step(e, runs, n_runs_max, ret_step);

	/* What seems to be the end of the PT may be where it cannot be read. */
	return r < 0 ? r : walk_read_error(&e->walk.walk) ?: walk_read_error(&e->times.walk);
}

/* libipt's callback at a packet that it does not know: there are none in the copy but where that
 * ends. */
static int read_packets(struct pt_packet_unknown *unknown, const struct pt_config *config,
			const uint8_t *at, void *context)
{
	struct insn_engine *e = context;
	const int r = ipt_copy_go_on(&e->copy, (uint64_t)(at - config->begin), offset_of(e));

	(void)unknown;
	if (r < 0 && r != -EBADMSG)
		e->error = r;
	return r == 0 ? 0 : -pte_bad_opc;
}

/* For the erratum about what ends a stretch of filtered code. */
static void set_filters(struct pt_config *c, const struct engine_filter *filters, size_t n)
{
	struct pt_conf_addr_filter *f = &c->addr_filter;
	uint64_t *const ranges[ENGINE_FILTERS_MAX][2] = {
		{ &f->addr0_a, &f->addr0_b },
		{ &f->addr1_a, &f->addr1_b },
		{ &f->addr2_a, &f->addr2_b },
		{ &f->addr3_a, &f->addr3_b },
	};

	for (size_t i = 0; i < n; i++) {
		*ranges[i][0] = filters[i].first;
		*ranges[i][1] = filters[i].last;
		/* As in RTIT_CTL: four bits for each. */
		f->config.addr_cfg |= (filters[i].stops ? UINT64_C(2) : 1) << (4 * i);
	}
}

/* The others are of packets, which are mended in the copy. */
static void set_errata(struct pt_config *c, uint32_t errata)
{
	c->errata.bdm64 = (errata & ERRATUM_BDM64) != 0;
	c->errata.bdm70 = (errata & ERRATUM_BDM70) != 0;
	c->errata.skd010 = (errata & ERRATUM_SKD010) != 0;
	c->errata.skd022 = (errata & ERRATUM_SKD022) != 0;
	c->errata.skl014 = (errata & ERRATUM_SKL014) != 0;
	c->errata.skl168 = (errata & ERRATUM_SKL168) != 0;
	c->errata.apl11 = (errata & ERRATUM_APL11) != 0;
	c->errata.apl12 = (errata & ERRATUM_APL12) != 0;
}

/* Make libipt's decoder over the copy. */
static int start_decoder(struct insn_engine *e)
{
	const struct engine_config *config = &e->config;
	const uint32_t errata = errata_find(config->cpu_family, config->cpu_model);
	const struct walk_config walk_config = {
		.pt = config->pt,
		.errata = errata,
		.mtc_freq = config->mtc_freq,
		.nom_freq = config->nom_freq,
		.cpuid_15_eax = config->cpuid_15_eax,
		.cpuid_15_ebx = config->cpuid_15_ebx,
		.has_events = config->has_events,
	};
	struct pt_config c;

	ipt_walk_init(&e->walk, &walk_config);
	ipt_walk_init(&e->times, &walk_config);
	if (ipt_copy_init(&e->copy, &config->pt, 0, errata, config->has_events) < 0)
		return -ENOMEM;
	e->image = pt_image_alloc(NULL);
	if (!e->image || pt_image_set_callback(e->image, read_code, e) < 0)
		return -ENOMEM;

	pt_config_init(&c);
	c.begin = e->copy.bytes;
	c.end = c.begin + config->pt.size;
	c.flags.variant.insn.enable_tick_events = 1;
	c.decode.callback = read_packets;
	c.decode.context = e;
	c.mtc_freq = config->mtc_freq;
	c.nom_freq = config->nom_freq;
	c.cpuid_0x15_eax = config->cpuid_15_eax;
	c.cpuid_0x15_ebx = config->cpuid_15_ebx;
	set_filters(&c, config->filters, config->n_filters);
	set_errata(&c, errata);
	e->decoder = pt_insn_alloc_decoder(&c);
	return e->decoder && pt_insn_set_image(e->decoder, e->image) == 0 ? 0 : -ENOMEM;
}

static struct engine *insn_free(struct engine *engine)
{
	struct insn_engine *e = (struct insn_engine *)engine;

	views_put(e->config.views, e->view);
	pt_insn_free_decoder(e->decoder);
	pt_image_free(e->image);
	ipt_walk_deinit(&e->times);
	ipt_walk_deinit(&e->walk);
	ipt_copy_deinit(&e->copy);
	free(e);
	return NULL;
}

static int start(const struct engine_config *config, struct engine **ret_engine)
{
	_cleanup_(engine_freep) struct engine *guard = NULL;
	struct insn_engine *e = calloc(1, sizeof(*e));

	if (!e)
		return -ENOMEM;
	*e = (struct insn_engine){
		.engine = { .ops = &engine_insn },
		.config = *config,
		.mode = 64,
		.pause = UINT64_MAX,
		.ended = config->pt.size == 0,
	};
	guard = &e->engine;
	if (config->pt.size > 0 && start_decoder(e) < 0)
		return -ENOMEM;
	*ret_engine = TAKE(guard);
	return 0;
}

static int set_space(struct engine *engine, const struct space *space, size_t generation,
		     size_t until)
{
	struct insn_engine *e = (struct insn_engine *)engine;
	int r;

	if (!space) {
		views_put(e->config.views, e->view);
		e->view = NULL;
		return 0;
	}
	r = views_get(e->config.views, space, generation, until, e->view, &e->view);
	return r < 0 ? r : 0;
}

static uint64_t decoded(const struct engine *engine)
{
	const struct insn_engine *e = (const struct insn_engine *)engine;

	return e->decoded + (e->ended || !e->started ? 0 : offset_of(e) - e->from);
}

static uint64_t offset(const struct engine *engine)
{
	const struct insn_engine *e = (const struct insn_engine *)engine;

	return e->ended ? e->config.pt.size : e->started ? offset_of(e) : 0;
}

static void pause_at(struct engine *engine, uint64_t at)
{
	struct insn_engine *e = (struct insn_engine *)engine;

	e->pause = at;
	e->passed = false;
}

const struct engine_ops engine_insn = {
	.name = "insn",
	.start = start,
	.free = insn_free,
	.set_space = set_space,
	.next = next,
	.decoded = decoded,
	.offset = offset,
	.pause_at = pause_at,
};
