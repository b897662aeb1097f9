/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What libipt reports between instructions, in our terms. */

#include "decoder/pt/ipt.h"

#include <string.h>

static bool stop(const struct ipt_engine *e, enum engine_stop why, struct engine_step *ret_step)
{
	ret_step->stop = why;
	ret_step->t = e->t;
	return true;
}

/* @event's own address, if it has one, is @ip. */
static bool mark(const struct ipt_engine *e, const struct pt_event *event, enum ptd_mark_kind kind,
		 uint64_t ip, struct engine_step *ret_step)
{
	ret_step->mark = kind;
	ret_step->ip = event->ip_suppressed ? 0 : ip;
	return stop(e, ENGINE_MARK, ret_step);
}

/* A mark with values; a PSB+ may repeat them. */
static bool mark_value(const struct ipt_engine *e, const struct pt_event *event,
		       enum ptd_mark_kind kind, uint64_t ip, uint64_t value, uint64_t extra,
		       struct engine_step *ret_step)
{
	ret_step->value = value;
	ret_step->extra = extra;
	return mark(e, event, kind, ip, ret_step);
}

static bool take_enabled(struct ipt_engine *e, const struct pt_event *event,
			 struct engine_step *ret_step)
{
	/* In a PSB+ it is said again. */
	if (!event->status_update)
		ipt_begin_stretch(e, e->event_end, event->variant.enabled.ip, true);
	return stop(e, ENGINE_ASK, ret_step);
}

static bool take_overflow(struct ipt_engine *e, const struct pt_event *event,
			  struct engine_step *ret_step)
{
	e->flow.way = IPT_FLOW_ANYWHERE;
	/* What was lost may have been a switch. */
	e->ask = true;
	if (!event->ip_suppressed)
		ipt_begin_stretch(e, e->event_end, event->variant.overflow.ip, true);
	ret_step->ip = event->ip_suppressed ? 0 : event->variant.overflow.ip;
	ret_step->reason = PTD_GAP_OVERFLOW;
	ret_step->offset = ipt_offset(e);
	ret_step->n_bytes = 0;
	return stop(e, ENGINE_GAP, ret_step);
}

static bool take_tsx(struct ipt_engine *e, const struct pt_event *event,
		     struct engine_step *ret_step)
{
	const bool begins = event->variant.tsx.speculative, aborted = event->variant.tsx.aborted;

	if (begins == e->in_transaction && !aborted)
		return false;
	e->in_transaction = begins;
	return mark_value(e, event, PTD_MARK_TSX, event->variant.tsx.ip,
			  aborted  ? PTD_TSX_ABORT
			  : begins ? PTD_TSX_BEGIN
				   : PTD_TSX_COMMIT,
			  0, ret_step);
}

/* Another page table: it may be another process's. */
static bool take_paging(struct ipt_engine *e, const struct pt_event *event, uint64_t cr3,
			uint64_t non_root, uint64_t ip, struct engine_step *ret_step)
{
	if (cr3 == e->cr3 && non_root == e->non_root)
		return stop(e, ENGINE_ASK, ret_step);
	e->cr3 = cr3;
	e->non_root = non_root;
	e->ask = true;
	return mark_value(e, event, PTD_MARK_PAGING, ip, cr3, non_root, ret_step);
}

static bool take_vmcs(struct ipt_engine *e, const struct pt_event *event, uint64_t base,
		      uint64_t ip, struct engine_step *ret_step)
{
	if (base == e->vmcs)
		return false;
	e->vmcs = base;
	return mark_value(e, event, PTD_MARK_VMCS, ip, base, 0, ret_step);
}

static bool take_cbr(struct ipt_engine *e, const struct pt_event *event,
		     struct engine_step *ret_step)
{
	const uint64_t ratio = event->variant.cbr.ratio;

	if (ratio == e->cbr)
		return false;
	e->cbr = ratio;
	return mark_value(e, event, PTD_MARK_CBR, 0, ratio, 0, ret_step);
}

static bool take_pwrx(const struct ipt_engine *e, const struct pt_event *event,
		      struct engine_step *ret_step)
{
	const uint64_t wake = (event->variant.pwrx.interrupt ? PTD_WAKE_INTERRUPT : 0u) |
			      (event->variant.pwrx.store ? PTD_WAKE_STORE : 0u) |
			      (event->variant.pwrx.autonomous ? PTD_WAKE_AUTONOMOUS : 0u);

	return mark_value(e, event, PTD_MARK_PWRX, 0,
			  (uint64_t)event->variant.pwrx.last << 4 | event->variant.pwrx.deepest,
			  wake, ret_step);
}

/* One with an address may be ours: it stands for something else. */
static bool take_exstop(struct ipt_engine *e, const struct pt_event *event,
			struct engine_step *ret_step)
{
	struct ipt_newer_mark ours = { .kind = PTD_MARK_EXSTOP };

	if (!event->ip_suppressed)
		(void)ipt_newer_take_standing(&e->newer, event->variant.exstop.ip, &ours);
	if (ours.follows) {
		e->newer.at = true;
		return false;
	}
	return mark_value(e, event, ours.kind, event->variant.exstop.ip, ours.value, ours.extra,
			  ret_step);
}

/* Return: whether the event is an interruption, and of what address. */
static bool is_async(const struct pt_event *event, uint64_t *ret_ip)
{
	switch (event->type) {
	case ptev_async_disabled:
		*ret_ip = event->variant.async_disabled.at;
		return true;
	case ptev_async_branch:
		*ret_ip = event->variant.async_branch.from;
		return true;
	default:
		return false;
	}
}

static bool take_async(struct ipt_engine *e, const struct pt_event *event,
		       struct engine_step *ret_step)
{
	e->flow.way = IPT_FLOW_ANYWHERE;
	ret_step->mark = PTD_MARK_ASYNC;
	(void)is_async(event, &ret_step->ip);
	return stop(e, ENGINE_MARK, ret_step);
}

/* Return: whether the caller must see it. */
static bool take(struct ipt_engine *e, const struct pt_event *event, struct engine_step *ret_step)
{
	switch (event->type) {
	case ptev_async_disabled:
	case ptev_async_branch:
		return take_async(e, event, ret_step);
	case ptev_disabled:
		e->flow.way = IPT_FLOW_ANYWHERE;
		return mark(e, event, PTD_MARK_OFF, event->variant.disabled.ip, ret_step);
	case ptev_exec_mode:
		e->mode = ipt_mode_bits(event->variant.exec_mode.mode);
		if (e->image)
			e->image->mode = e->mode;
		return false;
	case ptev_stop:
		return mark(e, event, PTD_MARK_STOP, 0, ret_step);
	case ptev_overflow:
		return take_overflow(e, event, ret_step);
	case ptev_enabled:
		return take_enabled(e, event, ret_step);
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
		return mark_value(e, event, PTD_MARK_PTWRITE, event->variant.ptwrite.ip,
				  event->variant.ptwrite.payload, event->variant.ptwrite.size,
				  ret_step);
	case ptev_exstop:
		return take_exstop(e, event, ret_step);
	case ptev_mwait:
		return mark_value(e, event, PTD_MARK_MWAIT, event->variant.mwait.ip,
				  event->variant.mwait.hints, event->variant.mwait.ext, ret_step);
	case ptev_pwre:
		/* libipt 2.0.5 reads the flag for "by hardware" from another bit than the SDM has
		 * it. */
		return mark_value(e, event, PTD_MARK_PWRE, 0,
				  (uint64_t)event->variant.pwre.state << 4 |
				      event->variant.pwre.sub_state,
				  0, ret_step);
	case ptev_pwrx:
		return take_pwrx(e, event, ret_step);
	default:
		return false;
	}
}

/*
 * Has what the mark is about been reached? libipt reads packets ahead, and fetches an event when it
 * stands at its last packet or, if that ends a stretch of code, behind it. A mark stands before
 * what its packet leads to; one of what interrupted the code before the event that it did.
 */
static bool is_reached(const struct ipt_engine *e, const struct ipt_newer_mark *mark)
{
	uint64_t ip;

	if (mark->follows)
		return false;
	if (!e->has_event)
		return !mark->interrupts && mark->next < ipt_offset(e);
	if (is_async(&e->event, &ip))
		return mark->interrupts
			   ? !e->newer.is_told && ((mark->ip ^ ip) & mark->ip_mask) == 0
			   : mark->next < e->event_end;
	if (mark->interrupts)
		return false;
	return e->event.type == ptev_disabled ? mark->next < e->event_end
					      : mark->next <= e->event_end;
}

bool ipt_newer_is_due(const struct ipt_engine *e)
{
	const struct ipt_newer *newer = &e->newer;

	if (newer->n == 0)
		return false;
	/* Too many wait only if the packets are broken. */
	return e->status < 0 || newer->n == IPT_NEWER_MAX ||
	       newer->waiting[0].kind == PTD_MARK_PEBS || is_reached(e, &newer->waiting[0]);
}

bool ipt_take_event(struct ipt_engine *e, struct engine_step *ret_step)
{
	bool is_later;

	if (!e->has_event) {
		e->event = (struct pt_event){};
		e->event_end = ipt_offset(e);
		e->newer.is_told = false;
		e->status = e->ops->event(e->decoder, &e->event);
		if (e->status < 0)
			return false;
		e->has_event = true;
		if (ipt_newer_is_due(e)) {
			ipt_take_newer(e, ret_step);
			return true;
		}
	}
	e->has_event = false;

	/* An event that waited for its instruction bears the time at which its packet was read. */
	is_later = e->event.has_tsc && e->event.tsc > e->t;
	if (is_later)
		e->t = e->event.tsc;
	if (take(e, &e->event, ret_step)) {
		if (ret_step->stop == ENGINE_MARK && is_later)
			e->ask = true;
		return true;
	}
	/* The time in a PSB+ makes no tick, but comes with the state that it repeats. */
	return is_later && stop(e, ENGINE_ASK, ret_step);
}

void ipt_take_newer(struct ipt_engine *e, struct engine_step *ret_step)
{
	struct ipt_newer *newer = &e->newer;
	const struct ipt_newer_mark first = newer->waiting[0];

	newer->is_told = first.interrupts && first.kind == PTD_MARK_CFE;
	newer->n--;
	memmove(newer->waiting, newer->waiting + 1, newer->n * sizeof(*newer->waiting));
	ret_step->mark = first.kind;
	ret_step->value = first.value;
	ret_step->extra = first.extra;
	(void)stop(e, ENGINE_MARK, ret_step);
}
