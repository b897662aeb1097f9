/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The engine over libipt's instruction decoder, which is the reference for engine flow. libipt
 * decides which instructions were executed. Of our own it takes the mapped code (view.h), the cache
 * of blocks, and the packets' boundaries: libipt reads a private copy of the packets (ipt_copy.h).
 * A walk of ours beside libipt says when code ran and where to go on behind an error.
 *
 * libipt takes an address from its stack of calls at a compressed return only; a CPU does at each
 * near return. So this engine keeps the CPU's stack (retstack.h) and libipt's beside each other.
 * Where a compressed return takes different addresses from the two, libipt begins anew there, with
 * the CPU's stack: see restart().
 *
 * libipt 2.1 reads ahead, so that with it this engine may say a later time, and begin a gap
 * elsewhere.
 *
 * Where libipt 2.0.5 knows less than engine flow, this engine says less. It does not report what
 * event trace, PEBS records, triggers and power events say (ptd_mark_kind CFE, EVD, PEBS, TRIG,
 * MWAIT, PWRE, EXSTOP and PWRX).
 *
 * This is the only file that knows <intel-pt.h>.
 */

#include "decoder/pt/engine_base.h"

#include <assert.h>
#include <errno.h>
#include <intel-pt.h>
#include <string.h>

#include "decoder/pt/errata.h"
#include "decoder/pt/ipt_copy.h"
#include "decoder/pt/retstack.h"
#include "decoder/x86/insn.h"
#include "util/psb.h"

/*
 * Where the instruction that was given out last leads. libipt does not promise that it goes there:
 * on bytes that are no code its lengths differ from ours, and broken packets lead it astray.
 */
struct course {
	enum seg_kind kind; /* SEG_FAR, too, if the caller was told of a break */
	uint8_t iclass;
	uint64_t ip;    /* the instruction's */
	uint64_t to[2]; /* as of run_leads() */
	bool may_go_on; /* it is an INTO, which libipt takes for one that interrupts */
	bool returns;   /* it is a compressed return: to @to[0] */
	bool sets_cr3;
	bool has_pip; /* for that there was a PIP */
};

/* Of the stretch of code that began last, by the packets that the walk has passed. */
struct stretch {
	bool is_known;
	uint64_t ip;
	struct when_bounds bounds;
	uint64_t at; /* offset behind the packet that says so */
	uint64_t t;  /* the latest TSC at which one began, since the walk began anew */

	/* TSC at the branch or event that the walk took last, at its first packet and its last.
	 * A PSB+ has a time of its own: libipt may have read it before it gives an event. */
	uint64_t taken_t, now, status_t;
};

/* The bits that libipt has not used of the TNT at the offsets from @start on before @end; the
 * oldest is the highest. */
struct tnt {
	uint64_t start, end, bits;
	unsigned n;
};

/* What libipt is shown instead of code. */
struct fake {
	const uint8_t *bytes; /* NULL: it is shown code */
	size_t size;
};

struct insn_engine {
	struct engine base;
	struct ipt_copy copy;
	struct pt_insn_decoder *decoder;
	bool reads_ahead; /* libipt is of a version that does: */
	struct tnt ahead; /* the TNT that it has read and not used; @n is 0: none */

	struct stretch stretch;
	/* The walk where libipt was, if it has looked for a stretch since. */
	struct walk before;
	struct stretch stretch_before;
	uint64_t passed; /* where the walk was behind the last event */
	bool enabled;    /* packets are on, as the events say that libipt has given */

	int status;  /* libipt's, of the last call */
	uint64_t ip; /* of the instruction that an error hit */
	struct course course;
	size_t n_known; /* instructions of the last run's block that are all mapped */

	struct retstack calls;     /* the CPU's, */
	struct retstack ipt_calls; /* and libipt's */
	struct tnt tnt;            /* whose bits libipt uses */
	struct fake fake;
	/* Packets end by the next instruction that can do that. */
	struct {
		bool is_due;
		uint64_t end; /* offset up to which packets had been used up */
		struct pt_event event;
	} way_out;
};

/*
 * libipt, and where it is
 *
 * libipt 2.0 stands before the packets of what it needs next. Since 2.1 it has read them: behind a
 * TNT it stands when that is next, before a TIP or TIP.PGE it still does, and behind most others.
 */

static bool reads_ahead(void)
{
	const struct pt_version version = pt_library_version();

	return version.major > 2 || (version.major == 2 && version.minor > 0);
}

/* Return: where libipt says that it stands: an offset in the copy. */
static uint64_t position(const struct insn_engine *e)
{
	uint64_t offset = IPT_COPY_LEAD;

	(void)pt_insn_get_offset(e->decoder, &offset);
	return offset;
}

/* Return: whether it could not read the packet there, by the status @status. */
static bool cannot_read(int status)
{
	return status >= 0
		   ? status & pts_eos
		   : status == -pte_eos || status == -pte_bad_opc || status == -pte_bad_packet;
}

static uint64_t used(const struct engine *engine)
{
	const struct insn_engine *e = (const struct insn_engine *)engine;
	const uint64_t at = position(e), offset = at > IPT_COPY_LEAD ? at - IPT_COPY_LEAD : 0;

	if (!e->reads_ahead || cannot_read(e->status))
		return offset;
	if (e->tnt.n > 0)
		return e->tnt.end < offset ? e->tnt.end : offset;
	return e->ahead.n > 0 ? e->ahead.start : offset;
}

/* libipt stood at @from, and has gone on. Find the TNT that it has read, and used no bit of. */
static void find_ahead(struct insn_engine *e, uint64_t from)
{
	const uint64_t end = position(e);
	const uint8_t *bytes = e->copy.bytes - IPT_COPY_LEAD;
	struct packet_reader reader = {};
	struct packet packet;

	for (uint64_t at = from; at < end; at += packet.size) {
		if (packet_read(&reader, bytes + at, end - at, &packet) != 0)
			return;
		if (packet_is_in(&packet, PACKETS_OF_TIME))
			continue;
		e->ahead.n = 0;
		if (packet.type != PACKET_TNT || at < IPT_COPY_LEAD)
			continue;
		e->ahead.start = at - IPT_COPY_LEAD;
		e->ahead.end = at + packet.size - IPT_COPY_LEAD;
		e->ahead.bits = packet.bits;
		e->ahead.n = packet.n_bits;
	}
}

/* Let libipt take the next instruction. Return: its status. */
static int next_insn(struct insn_engine *e, struct pt_insn *ret_insn)
{
	const uint64_t before = position(e);
	const int status = pt_insn_next(e->decoder, ret_insn, sizeof(*ret_insn));

	if (e->reads_ahead)
		find_ahead(e, before);
	return status;
}

/* The same of the next event. */
static int next_event(struct insn_engine *e, struct pt_event *ret_event)
{
	const uint64_t before = position(e);
	const int status = pt_insn_event(e->decoder, ret_event, sizeof(*ret_event));

	if (e->reads_ahead)
		find_ahead(e, before);
	return status;
}

/* Let libipt begin at the PSB at @offset of the copy. Return: its status. */
static int sync_to(struct insn_engine *e, uint64_t offset)
{
	const int status = pt_insn_sync_set(e->decoder, offset);

	e->ahead.n = 0;
	if (e->reads_ahead && status >= 0)
		find_ahead(e, offset);
	return status;
}

/*
 * Code
 */

/* Return: whether the instruction has a VEX, EVEX or XOP prefix, or may have one. */
static bool is_vector(const uint8_t *code, size_t size)
{
	static const char prefixes[] = "\x26\x2e\x36\x3e\x64\x65\x67";
	size_t i = 0;

	while (i < size && memchr(prefixes, code[i], sizeof(prefixes) - 1))
		i++;
	return i < size && memchr("\xc4\xc5\x62\x8f", code[i], 4);
}

/*
 * Instructions that libipt 2.0.5 does not know as branches, or whose length it does not know: it
 * would go on behind them, or within the next one. So it is shown an older instruction of the same
 * length in their place, which takes the same packets: an iret for a return of FRED or of SMM, an
 * indirect jump for a JMPABS, a vmcall for a call of the TDX module, a nop for what has a VEX or
 * EVEX prefix.
 */
static void disguise(uint8_t mode, uint8_t *code, size_t size)
{
	static const uint8_t iret[] = { 0xcf }, jump[] = { 0xff, 0xe0 }, nop[] = { 0x90 },
			     vmcall[] = { 0x0f, 0x01, 0xc1 };
	const uint8_t *older = NULL;
	size_t older_size = 0;
	struct insn insn;

	if (insn_decode(mode, code, size, &insn) < 0)
		return;
	if (insn.class == PTD_INSN_RETURN_FAR) {
		older = iret;
		older_size = sizeof(iret);
	} else if (insn.class == PTD_INSN_JUMP_INDIRECT && mode == 64 && code[0] == 0xd5) {
		older = jump;
		older_size = sizeof(jump);
	} else if (insn.class == PTD_INSN_VM && !system_enters_vm(code, insn.size)) {
		older = vmcall;
		older_size = sizeof(vmcall);
	} else if (insn.class == PTD_INSN_OTHER && is_vector(code, insn.size)) {
		older = nop;
		older_size = sizeof(nop);
	}
	if (!older)
		return;
	memset(code, 0x2e, insn.size); /* a prefix that means nothing to these */
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

	if (e->fake.bytes) {
		memcpy(buffer, e->fake.bytes, e->fake.size);
		return (int)e->fake.size;
	}
	if (!e->base.view)
		return -pte_nomap;
	if (view_find_code(e->base.view, ip, &extent, &offset, &last) != 0) {
		ip = (uint32_t)ip;
		if (view_find_code(e->base.view, ip, &extent, &offset, &last) != 0)
			return -pte_nomap;
	}
	if (size > last - ip)
		size = (size_t)(last - ip) + 1;
	bytes = object_bytes(extent->object, offset, size);
	if (!bytes)
		return -pte_nomap;
	memcpy(buffer, bytes, size);
	disguise(e->base.mode, buffer, size);
	return (int)size;
}

/* Why there is no instruction at the address where libipt stopped. */
static enum ptd_gap_reason why_no_code(struct insn_engine *e, enum ptd_gap_reason otherwise)
{
	struct ptd_run run;
	int r;

	/* Without an address it means that packets do not say where execution is. */
	if (!e->ip)
		return PTD_GAP_BAD_FLOW;
	r = e->base.view ? view_find_run(e->base.view, e->ip, e->base.mode, &run) : 0;
	if (r < 0)
		e->base.error = r;
	return r > 0 ? (enum ptd_gap_reason)(r - 1) : otherwise;
}

/*
 * Runs
 */

/* Return: whether the last run leads to @ip. */
static bool leads_to(const struct course *course, uint64_t ip)
{
	switch (course->kind) {
	case SEG_ON:
		return ip == course->to[0];
	case SEG_RETURN:
		return !course->returns || ip == course->to[0];
	case SEG_COND:
		return ip == course->to[0] || ip == course->to[1];
	default:
		return !course->may_go_on || ip >> 63;
	}
}

/* Control goes where the last instruction does not lead. */
static void break_off(struct course *course)
{
	course->kind = SEG_FAR;
	course->may_go_on = false;
}

/* Return: whether the last instruction is a direct branch. */
static bool is_direct(const struct course *course)
{
	return course->iclass == PTD_INSN_JUMP || course->iclass == PTD_INSN_CALL;
}

/* Return: whether @ip is the next instruction of the block of the last run, which it joins: with
 * it, that is @ret_run. */
static bool extend(const struct insn_engine *e, const struct runlist *out, uint64_t ip,
		   struct ptd_run *ret_run)
{
	const struct ptd_run *run = out->n > 0 ? &out->runs[out->n - 1] : NULL;

	if (!run || run->first + run->n >= e->n_known || ptd_run_ip(run, run->n) != ip)
		return false;
	*ret_run = *run;
	ret_run->n++;
	return true;
}

/* Find what is at @ip: @ret_run has all instructions there that are mapped. Return: 0, or what is
 * libipt's status for that. */
static int find_run(struct insn_engine *e, uint64_t ip, struct ptd_run *ret_run)
{
	int r;

	if (!e->base.view)
		return -pte_nomap;
	r = view_find_run(e->base.view, ip, e->base.mode, ret_run);
	if (r < 0)
		e->base.error = r;
	if (r != 0)
		return r == 1 + PTD_GAP_UNKNOWN_INSN ? -pte_bad_insn : -pte_nomap;
	return 0;
}

/* Return: whether libipt says of the instruction what we say of the last one of @run. */
static bool agrees(const struct pt_insn *insn, const struct ptd_run *run, enum seg_kind kind)
{
	static const enum pt_insn_class near[] = {
		[PTD_INSN_OTHER] = ptic_other,        [PTD_INSN_JUMP] = ptic_jump,
		[PTD_INSN_JUMP_INDIRECT] = ptic_jump, [PTD_INSN_JUMP_COND] = ptic_cond_jump,
		[PTD_INSN_CALL] = ptic_call,          [PTD_INSN_CALL_INDIRECT] = ptic_call,
		[PTD_INSN_RETURN] = ptic_return,      [PTD_INSN_RETURN_FAR] = ptic_far_return,
		[PTD_INSN_SYSCALL] = ptic_far_call,   [PTD_INSN_SYSENTER] = ptic_far_call,
		[PTD_INSN_INTERRUPT] = ptic_far_call, [PTD_INSN_VM] = ptic_far_call,
		[PTD_INSN_PTWRITE] = ptic_ptwrite,
	};
	const struct ptd_insn *last = run_last(run);
	enum pt_insn_class class = near[last->iclass];

	if (kind == SEG_FAR && class == ptic_jump)
		class = ptic_far_jump;
	else if (kind == SEG_FAR && class == ptic_call)
		class = ptic_far_call;
	else if (last->iclass == PTD_INSN_VM &&
		 system_enters_vm(run->block->bytes + last->offset, last->size))
		class = ptic_far_return;
	/* Newer versions may have more classes. */
	return insn->size == last->size && (insn->iclass == class || insn->iclass > ptic_ptwrite);
}

/*
 * Give out the instruction at @ip, which was executed. @insn: what libipt says of it, or NULL.
 *
 * Return: 0, or what is libipt's status if it cannot have been.
 */
static int emit(struct insn_engine *e, struct runlist *out, uint64_t ip, const struct pt_insn *insn)
{
	struct course course = { .ip = ip };
	const struct ptd_insn *last;
	struct ptd_run run;
	bool is_new;
	int r = 0;

	e->ip = ip;
	if (!leads_to(&e->course, ip))
		return -pte_bad_query;
	is_new = !extend(e, out, ip, &run);
	if (is_new)
		r = find_run(e, ip, &run);
	if (r < 0)
		return r;
	if (is_new) {
		e->n_known = run.n;
		run.t = e->base.t;
		run.n = 1;
	}
	last = run_last(&run);
	course.iclass = last->iclass;
	course.kind = run_leads(&run, course.to);
	course.may_go_on =
	    last->iclass == PTD_INSN_INTERRUPT &&
	    system_may_go_on(last->iclass, run.block->bytes + last->offset, last->size);
	course.sets_cr3 = last->iclass == PTD_INSN_OTHER &&
			  system_sets_cr3(run.block->bytes + last->offset, last->size);
	if (insn && !agrees(insn, &run, course.kind))
		return -pte_bad_insn;
	if (is_new)
		(void)engine_note_run(&e->base, run.block, out->n++);
	out->runs[out->n - 1] = run;
	out->n_insns++;
	e->course = course;
	e->ip = run_next(&run);
	if (run_pushes(&run, course.kind, course.to)) {
		retstack_push(&e->calls, e->ip, NULL);
		retstack_push(&e->ipt_calls, e->ip, NULL);
	}
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
	const int status = next_insn(e, &insn);
	int r = 0;

	e->base.mode = bits_of(insn.mode);
	e->ip = insn.ip;
	/* On an error the instruction is given too, if it was executed: then it has a class. */
	if (insn.iclass != ptic_error)
		/* libipt reckons with 64 bits, whatever the mode. */
		r = emit(e, out, insn_wrap(e->base.mode, insn.ip), &insn);
	return r < 0 ? r : status;
}

/*
 * When code ran: the walk follows libipt, and tells the time. libipt counts cycles from each MTC,
 * though a CYC behind it also counts those before it, if there is a threshold.
 */

/* Let the time be @t, unless it is later already. */
static void set_later(struct insn_engine *e, uint64_t t)
{
	if (t > e->base.t)
		e->base.t = t;
}

/* A stretch of code begins at @ip, where the walk stands. The time known there is the walk's. */
static void note_stretch(struct insn_engine *e, uint64_t ip)
{
	const uint64_t now = e->base.walk.tsc.now;
	struct when_bounds bounds = when_find(&e->base.when, &e->base.walk, ip);

	if (!(ip >> 63)) {
		if (now > e->stretch.t)
			e->stretch.t = now;
		bounds = (struct when_bounds){ .from = bounds.from ?: e->stretch.t,
					       .to = bounds.to ?: e->stretch.t };
	}
	e->stretch.is_known = true;
	e->stretch.at = e->base.walk.offset;
	e->stretch.ip = ip;
	e->stretch.bounds = bounds;
}

/* Take a branch or an event. Return: what it was; behind an error the walk begins anew. */
static enum walk_next take_next(struct insn_engine *e)
{
	struct walk *walk = &e->base.walk;
	const bool was_in_kernel = walk->last_ip >> 63;
	enum walk_next next = walk_ahead(walk);
	struct walk_event event;
	uint64_t unused;
	bool has_ip;

	switch (next) {
	case WALK_TNT:
		(void)walk_take_tnt(walk, &unused);
		break;
	case WALK_TIP:
		if (!walk_take_tip(walk, &unused) || !was_in_kernel || walk->last_ip >> 63)
			break;
		walk->is_timed = false;
		note_stretch(e, walk->last_ip);
		break;
	case WALK_EVENT:
		if (!walk_take_event(walk, &event))
			next = WALK_ERROR;
		else if (event.kind == WALK_ENABLED ||
			 (event.kind == WALK_OVERFLOW && event.has_ip))
			note_stretch(e, event.ip);
		break;
	default:
		break;
	}
	if (next == WALK_EVENT && event.is_status) {
		e->stretch.status_t = walk_now(walk);
	} else {
		e->stretch.now = walk_now(walk);
		e->stretch.taken_t = next == WALK_EVENT ? event.t : e->stretch.now;
	}
	if (next != WALK_ERROR)
		return next;
	e->stretch.t = e->stretch.taken_t = e->stretch.now = e->stretch.status_t = 0;
	return walk_sync(walk, walk->offset + 1, &unused, &has_ip) ? WALK_ERROR : WALK_END;
}

/* Keep where the walk is: libipt is there, too. */
static void keep_walk(struct insn_engine *e)
{
	e->before = e->base.walk;
	e->stretch_before = e->stretch;
}

/* Let the walk go back to there, if it is behind @offset. */
static void go_back(struct insn_engine *e, uint64_t offset)
{
	if (e->base.walk.offset <= offset)
		return;
	walk_go_back(&e->base.walk, &e->before);
	e->stretch = e->stretch_before;
}

/* Let the walk come to @offset, where libipt is, or to the first branch or event behind it. */
static void come_to(struct insn_engine *e, uint64_t offset)
{
	struct walk *walk = &e->base.walk;
	const bool is_behind = walk->offset > offset;

	while (walk_ahead(walk) != WALK_END &&
	       (walk->offset < offset || (walk->offset == offset && walk->ready.n > 0)) &&
	       take_next(e) != WALK_END)
		;
	if (!is_behind)
		keep_walk(e);
}

static bool is_at(const struct insn_engine *e, uint64_t ip)
{
	return e->stretch.is_known && e->stretch.ip == ip;
}

/* Find the bounds of the stretch of code that begins at @ip, by a packet that libipt had read when
 * it stood at @offset. */
static struct when_bounds find_bounds(struct insn_engine *e, uint64_t offset, uint64_t ip)
{
	const struct walk *walk = &e->base.walk;

	if (walk->offset < offset || e->stretch.at <= e->passed)
		e->stretch.is_known = false;
	come_to(e, offset);
	/* libipt may have read the end of a short stretch already: packets are off then. */
	while (!walk->enabled && !is_at(e, ip))
		if (take_next(e) == WALK_END)
			break;
	return is_at(e, ip) ? e->stretch.bounds : (struct when_bounds){};
}

/* The same of what the kernel returns to, by the last packet before @offset or the next TIP. */
static struct when_bounds find_bounds_of_return(struct insn_engine *e, uint64_t offset)
{
	const struct walk *walk = &e->base.walk;
	enum walk_next next = WALK_TNT;

	come_to(e, offset);
	/* The TIP may have been used up already. */
	while (walk->last_ip >> 63 && walk->enabled && next != WALK_TIP && next != WALK_END)
		next = take_next(e);
	/* Behind a TIP.PGD nothing follows until a TIP.PGE. */
	return walk->enabled && !(walk->last_ip >> 63) ? e->stretch.bounds : (struct when_bounds){};
}

/*
 * Events
 */

static struct walk_event made(enum walk_kind kind, uint64_t ip, uint64_t value, uint64_t extra)
{
	return (struct walk_event){ .kind = kind, .ip = ip, .value = value, .extra = extra };
}

static struct walk_event made_mark(enum ptd_mark_kind mark, uint64_t ip, uint64_t value,
				   uint64_t extra)
{
	struct walk_event event = made(WALK_MARK, ip, value, extra);

	event.mark = mark;
	return event;
}

/* Return: what libipt says as an event of our own walk; WALK_NOTHING if we do not report it. */
static struct walk_event event_of(const struct pt_event *event)
{
	const typeof(event->variant) *is = &event->variant;

	switch (event->type) {
	case ptev_async_disabled:
		return made(WALK_ASYNC_DISABLED, is->async_disabled.at, 0, 0);
	case ptev_async_branch:
		return made(WALK_ASYNC, is->async_branch.from, 0, 0);
	case ptev_enabled:
		return made(WALK_ENABLED, is->enabled.ip, 0, 0);
	case ptev_disabled:
		return made(WALK_DISABLED, is->disabled.ip, 0, 0);
	case ptev_exec_mode:
		return made(WALK_MODE, 0, bits_of(is->exec_mode.mode), 0);
	case ptev_overflow:
		return made(WALK_OVERFLOW, is->overflow.ip, 0, 0);
	case ptev_paging:
		return made(WALK_PAGING, 0, is->paging.cr3, is->paging.non_root);
	case ptev_async_paging:
		return made(WALK_PAGING, is->async_paging.ip, is->async_paging.cr3,
			    is->async_paging.non_root);
	case ptev_vmcs:
		return made(WALK_VMCS, 0, is->vmcs.base, 0);
	case ptev_async_vmcs:
		return made(WALK_VMCS, is->async_vmcs.ip, is->async_vmcs.base, 0);
	case ptev_tsx:
		return made(WALK_TSX, is->tsx.ip,
			    (is->tsx.speculative ? PACKET_TSX_BEGIN : 0u) |
				(is->tsx.aborted ? PACKET_TSX_ABORT : 0u),
			    0);
	case ptev_stop:
		return made_mark(PTD_MARK_STOP, 0, 0, 0);
	case ptev_cbr:
		return made_mark(PTD_MARK_CBR, 0, is->cbr.ratio, 0);
	case ptev_ptwrite:
		return made_mark(PTD_MARK_PTWRITE, is->ptwrite.ip, is->ptwrite.payload,
				 is->ptwrite.size);
	default:
		return made(WALK_NOTHING, 0, 0, 0);
	}
}

/* Note whether packets are on behind the event. */
static void note_enabled(struct insn_engine *e, const struct pt_event *event)
{
	switch (event->type) {
	case ptev_enabled:
		e->enabled = true;
		return;
	case ptev_disabled:
	case ptev_async_disabled:
		e->enabled = false;
		return;
	case ptev_overflow:
		e->enabled = !event->ip_suppressed;
		return;
	default:
		return;
	}
}

static bool is_stretch(const struct pt_event *event)
{
	/* A PSB+ says again that packets are on. */
	return (event->type == ptev_enabled && !event->status_update) ||
	       (event->type == ptev_overflow && !event->ip_suppressed);
}

static bool report(struct insn_engine *e, const struct pt_event *pt_event,
		   struct engine_step *ret_step)
{
	struct walk_event event = event_of(pt_event);

	/* The CPU compresses no return to a call before these. */
	if (pt_event->status_update || event.kind == WALK_ENABLED || event.kind == WALK_OVERFLOW)
		e->calls.depth = e->tnt.n = 0;
	switch (event.kind) {
	case WALK_ENABLED:
		engine_stop(&e->base, ENGINE_ASK, 0, ret_step);
		return true;
	case WALK_ASYNC:
	case WALK_ASYNC_DISABLED:
		/* It is where control went that libipt may not know. */
		break_off(&e->course);
		return engine_report(&e->base, &event, ret_step);
	case WALK_DISABLED:
		/* An INTO, or what follows it, has left. */
		if (e->course.may_go_on && pt_event->ip_suppressed) {
			engine_lose(&e->base, PTD_GAP_BAD_FLOW, e->course.ip, ret_step);
			return true;
		}
		break_off(&e->course);
		break;
	case WALK_PAGING:
		e->course.has_pip = pt_event->type == ptev_paging && e->course.sets_cr3;
		break;
	case WALK_OVERFLOW:
		break_off(&e->course);
		break;
	default:
		break;
	}
	if (pt_event->ip_suppressed)
		event.ip = 0;
	return engine_report(&e->base, &event, ret_step);
}

/* Deliver @event. @end: offset up to which packets had been used up. Return: whether the caller
 * must see it. */
static bool deliver_event(struct insn_engine *e, const struct pt_event *event, uint64_t end,
			  struct engine_step *ret_step)
{
	const bool begins = e->base.config.has_threads && is_stretch(event);
	const uint64_t ip = event_of(event).ip;
	struct when_bounds bounds = {};
	bool stops;

	if (begins && !(ip >> 63))
		bounds = find_bounds(e, end, ip);
	else
		come_to(e, end);
	set_later(e, event->status_update ? e->stretch.status_t : e->stretch.taken_t);
	stops = report(e, event, ret_step);
	set_later(e, event->status_update ? 0 : e->stretch.now);
	if (begins)
		engine_begin_stretch(&e->base, bounds, !(ip >> 63));
	e->passed = e->base.walk.offset;
	note_enabled(e, event);
	return stops;
}

/* Take @event, as deliver_event(), with the time that it bears. */
static bool take_timed(struct insn_engine *e, const struct pt_event *event, uint64_t end,
		       struct engine_step *ret_step)
{
	const uint64_t before = e->base.t;
	bool stops = false;

	if (event->type == ptev_tick)
		return false;
	if (event->type == ptev_cbr && e->enabled) {
		/* No packet says where in the code that was. */
		come_to(e, end);
		stops = report(e, event, ret_step);
	} else {
		stops = deliver_event(e, event, end, ret_step);
	}
	if (stops && ret_step->stop == ENGINE_MARK && e->base.t > before)
		e->base.ask = true;
	if (stops)
		return true;
	/* The time in a PSB+ makes no tick, but comes with the state that it repeats. */
	if (e->base.t > before)
		engine_stop(&e->base, ENGINE_ASK, 0, ret_step);
	return e->base.t > before;
}

/* Take the event that is pending. Return: whether @ret_step is one that the caller must see; if
 * not, see @status. */
static bool take_event(struct insn_engine *e, struct engine_step *ret_step)
{
	const uint64_t end = engine_used(&e->base);
	struct pt_event event = {};

	e->status = next_event(e, &event);
	if (e->status < 0)
		return false;
	/* libipt 2.1 says at each PSB+ that has no FUP that packets are off, which they were. */
	if (event.type == ptev_disabled && event.status_update)
		return false;
	/* libipt takes packets that end behind a MOV to CR3 for a CR3 filter's doing. But the PIP
	 * has told of this instruction. A kernel that isolates page tables takes the user's a few
	 * instructions before it leaves. */
	if (event.type == ptev_disabled && event.ip_suppressed && e->course.has_pip) {
		e->way_out.is_due = true;
		e->way_out.end = end;
		e->way_out.event = event;
		return false;
	}
	return take_timed(e, &event, end, ret_step);
}

/*
 * Errors
 */

/* Why libipt could not go on. */
static enum ptd_gap_reason reason_of(struct insn_engine *e, int status)
{
	switch (-status) {
	case pte_nomap:
		return why_no_code(e, PTD_GAP_NO_CODE);
	case pte_bad_insn:
		return why_no_code(e, PTD_GAP_UNKNOWN_INSN);
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

static void forget(struct engine *engine, uint64_t offset)
{
	struct insn_engine *e = (struct insn_engine *)engine;

	break_off(&e->course);
	e->ip = 0;
	e->passed = offset; /* no stretch that was noted before is what libipt gives next */
	e->calls.depth = e->ipt_calls.depth = e->tnt.n = 0;
	e->way_out.is_due = false;
	go_back(e, offset);
	come_to(e, offset);
}

/* Let libipt begin at @offset, behind the @n bytes at @psb. Return: whether it can, or there is an
 * error. */
static bool begin_at(struct insn_engine *e, uint64_t offset, const uint8_t *psb, size_t n)
{
	keep_walk(e);
	e->copy.is_guest = n > 0 && e->base.walk.state.non_root;
	e->base.error = ipt_copy_begin(&e->copy, offset, psb, n);
	if (e->base.error == 0)
		e->status = sync_to(e, IPT_COPY_LEAD + offset - n);
	return e->base.error < 0 || e->status >= 0;
}

/* A PSB+ that is itself broken is passed over. */
static bool sync_at(struct engine *engine, uint64_t offset, bool has_ip)
{
	struct insn_engine *e = (struct insn_engine *)engine;

	e->enabled = has_ip;
	if (!begin_at(e, offset, NULL, 0))
		return false;
	if (e->base.error == 0)
		(void)walk_ahead(&engine->walk);
	if (engine->walk.tsc.has_tsc)
		engine->t = engine->walk.tsc.now;
	return true;
}

/* Room for the longest PSB+. */
#define PSB_PLUS_MAX 80

/* Make the PSB+ that a CPU would write where @walk stands, with execution at @ip. Return: its
 * size. */
static size_t make_psb(const struct walk *walk, uint64_t ip, uint8_t ret_bytes[static PSB_PLUS_MAX])
{
	const struct walk_state *state = &walk->state;
	const uint64_t pip = state->cr3 >> 5 << 1 | (state->non_root & 1), vmcs = state->vmcs >> 12;
	const uint8_t mode = state->mode == 64 ? 1 : state->mode == 32 ? 2 : 0;
	uint8_t *p = mempcpy(ret_bytes, psb_bytes, PSB_SIZE);

	if (state->has_cr3)
		p = mempcpy(mempcpy(p, "\x02\x43", 2), &pip, 6);
	if (state->has_vmcs)
		p = mempcpy(mempcpy(p, "\x02\xc8", 2), &vmcs, 5);
	if (state->mode)
		p = mempcpy(mempcpy(p, "\x99", 1), &mode, 1);
	if (state->tsx & PACKET_TSX_BEGIN)
		p = mempcpy(p, "\x99\x21", 2);
	p = mempcpy(mempcpy(p, "\xdd", 1), &ip, 8); /* FUP */
	p = mempcpy(p, "\x02\x23", 2);
	return (size_t)(p - ret_bytes);
}

/* libipt can begin at a PSB+ only: one that says what is known at @point takes the place of the
 * bytes before it. */
static bool go_on_at(struct engine *engine, const struct walk_point *point)
{
	struct insn_engine *e = (struct insn_engine *)engine;
	const struct tsc *tsc = &engine->walk.tsc;
	uint8_t psb[PSB_PLUS_MAX];
	const size_t size = make_psb(&engine->walk, point->ip, psb);

	if (!begin_at(e, point->offset, psb, size))
		return false;
	if (tsc->has_tsc && tsc->now > engine->t)
		engine->t = tsc->now;
	if (engine->config.has_threads)
		note_stretch(e, point->ip);
	engine_begin_stretch(engine, e->stretch.bounds, !(point->ip >> 63));
	return true;
}

/*
 * The stack of calls
 */

/* Room for a PSB+, a TIP for each call and one more, and a TNT. */
#define RESTART_MAX (PSB_PLUS_MAX + (RETSTACK_SIZE + 1) * 9 + 8)

static_assert(RESTART_MAX <= IPT_COPY_LEAD, "it fits before the first packet");

static uint8_t *put_tip(uint8_t *p, uint64_t ip)
{
	return mempcpy(mempcpy(p, "\xcd", 1), &ip, sizeof(ip));
}

/* Put the bit of a return that is taken, and those that are left of its TNT. */
static uint8_t *put_tnt(uint8_t *p, uint64_t bits, unsigned n)
{
	const uint64_t left = n > 0 ? bits >> (64 - n) : 0;
	const uint64_t payload = UINT64_C(3) << n | left;

	return mempcpy(mempcpy(p, "\x02\xa3", 2), &payload, 6);
}

/* Let libipt take the instruction at @ip that it is shown. What a PSB+ repeats is known. */
static void take_fake(struct insn_engine *e, uint64_t ip)
{
	struct pt_event event;
	struct pt_insn insn = {};

	while (e->status > 0 && e->status & pts_event_pending)
		e->status = next_event(e, &event);
	if (e->status >= 0)
		e->status = next_insn(e, &insn);
	if (e->status >= 0 && insn.ip != ip)
		e->status = -pte_bad_query;
}

/*
 * The last instruction is a compressed return, and libipt, whose stack of calls is another one, has
 * taken the wrong address. It can only begin anew at a PSB+, and its stack cannot be set. So it is
 * shown a CPU that makes the calls which are on the CPU's stack, by an indirect call before each
 * address of them. The last call goes to where the last packet with an address led, since the next
 * one is compressed against that; and there a return takes the bit of this one, and leads where it
 * leads.
 */
static void restart(struct insn_engine *e)
{
	static const uint8_t call[] = { 0xff, 0xd0 }, ret[] = { 0xc3 };
	const struct walk *walk = &e->base.walk;
	const unsigned n = e->calls.depth;
	uint64_t ips[RETSTACK_SIZE + 1];
	uint8_t bytes[RESTART_MAX], *p;

	go_back(e, e->tnt.end);
	while (walk->offset < e->tnt.end && take_next(e) != WALK_END)
		;
	e->status = -pte_bad_query;
	if (walk->offset != e->tnt.end)
		return;
	for (unsigned i = 0; i < n; i++)
		ips[i] = e->calls.ips[(e->calls.top - (n - 1 - i)) % RETSTACK_SIZE] - sizeof(call);
	ips[n] = walk->last_ip;
	p = bytes + make_psb(walk, ips[0], bytes);
	for (unsigned i = 1; i <= n; i++)
		p = put_tip(p, ips[i]);
	p = put_tnt(p, e->tnt.bits, e->tnt.n);
	if (!begin_at(e, e->tnt.end, bytes, (size_t)(p - bytes)))
		return;
	set_later(e, e->stretch.now);
	e->fake = (struct fake){ call, sizeof(call) };
	for (unsigned i = 0; i < n; i++)
		take_fake(e, ips[i]);
	e->fake = (struct fake){ ret, sizeof(ret) };
	take_fake(e, ips[n]);
	e->fake = (struct fake){};
	if (e->ahead.start < e->tnt.end)
		e->ahead.n = 0;
	e->ipt_calls = e->calls;
}

/* libipt was at @offset. Find the TNT from which it has taken a bit, if it has used up packets. */
static void find_tnt(struct insn_engine *e, uint64_t offset)
{
	struct peek peek = peek_from(&e->base.walk, offset);
	struct packet packet;

	peek.reader.item_size = 0;
	if (!peek_past(&peek, PACKETS_OF_TIME | PACKETS_OF_REPORTS, &packet) ||
	    packet.type != PACKET_TNT)
		return;
	e->tnt = (struct tnt){
		.start = offset,
		.end = peek.offset,
		.bits = packet.bits,
		.n = packet.n_bits,
	};
}

/* libipt was at @offset, where it had read @ahead, and has taken a branch. Return: whether it used
 * a bit of a TNT. */
static bool uses_bit(struct insn_engine *e, uint64_t offset, const struct tnt *ahead)
{
	if (e->tnt.n == 0 && ahead->n > 0) {
		e->tnt = *ahead;
		/* It may not have read on. */
		if (e->ahead.start == ahead->start)
			e->ahead.n = 0;
	} else if (e->tnt.n == 0 && !e->reads_ahead && engine_used(&e->base) != offset) {
		find_tnt(e, offset);
	}
	if (e->tnt.n == 0)
		return false;
	e->tnt.bits <<= 1;
	e->tnt.n--;
	return true;
}

/* The last instruction is a return, and compressed. */
static void take_compressed(struct insn_engine *e)
{
	const struct retstack *calls = &e->calls, *ipt_calls = &e->ipt_calls;
	struct seg_call *call;

	/* Packets are broken: it was not taken, or there was no call. */
	if (e->status == -pte_bad_retcomp)
		return;
	if (calls->depth == 0) {
		e->status = -pte_bad_retcomp;
		return;
	}
	if (ipt_calls->depth == 0 || ipt_calls->ips[ipt_calls->top] != calls->ips[calls->top])
		restart(e);
	e->course.returns = true;
	e->course.to[0] = insn_wrap(e->base.mode, retstack_pop(&e->calls, &call));
	retstack_drop(&e->ipt_calls);
}

/* libipt was at @offset, where it had read @ahead, and has taken the last instruction. Follow what
 * it took for a branch. */
static void take_branch(struct insn_engine *e, uint64_t offset, const struct tnt *ahead)
{
	if (e->course.kind == SEG_COND)
		(void)uses_bit(e, offset, ahead);
	if (e->course.kind != SEG_RETURN)
		return;
	if (uses_bit(e, offset, ahead))
		take_compressed(e);
	else
		retstack_drop(&e->calls);
}

/* libipt cannot go on, or packets are over. */
static void fail(struct insn_engine *e, struct engine_step *ret_step)
{
	if (e->base.error < 0)
		return;
	if (e->status == -pte_eos && engine_used(&e->base) >= e->base.config.pt.size)
		engine_end(&e->base, ret_step);
	else
		engine_lose(&e->base, reason_of(e, e->status), e->ip, ret_step);
}

/* Return: whether code has been running for too long without using up packets. */
static bool spins(struct insn_engine *e)
{
	const uint64_t paid = e->base.paid;
	const bool can_pay = engine_can_pay(&e->base, 1);

	if (e->base.paid > paid)
		e->base.spin_insns = 0;
	return !can_pay || ++e->base.spin_insns > ENGINE_SPIN_MAX;
}

/* Return: whether the code leads back to where it has been. */
static bool circles(struct insn_engine *e)
{
	if (e->course.kind == SEG_ON)
		return is_direct(&e->course) &&
		       engine_circle_closes(&e->base.circle, e->course.to[0]);
	e->base.circle.n = e->base.spin_insns = 0;
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
	if (!e->base.config.has_threads || !(e->course.ip >> 63) ||
	    e->course.iclass != PTD_INSN_RETURN_FAR)
		return false;
	engine_begin_stretch(&e->base, find_bounds_of_return(e, offset), true);
	return true;
}

/* Return: whether the packet at @offset reports branches, and libipt has used it up. If it has not,
 * an earlier one reported the last branch, and what follows may be an event. */
static bool has_used_branch(struct insn_engine *e, uint64_t offset)
{
	struct peek peek = peek_from(&e->base.walk, offset);
	struct packet packet;

	peek.reader.item_size = 0;
	return engine_used(&e->base) != offset && peek_next(&peek, &packet) &&
	       packet_is_in(&packet, PACKET_BIT(TNT) | PACKET_BIT(TIP));
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

/* The packet at @offset has decided a branch: what is behind it has the time known there. */
static void take_walks_time(struct insn_engine *e, uint64_t offset)
{
	enum walk_next next;

	come_to(e, offset);
	next = walk_ahead(&e->base.walk);
	/* It may have been passed already. */
	if (e->base.walk.offset != offset || (next != WALK_TNT && next != WALK_TIP))
		return;
	(void)take_next(e);
	set_later(e, e->stretch.now);
}

/* Take an instruction. Return: whether @ret_step is filled in; if not, see @status. */
static bool step(struct insn_engine *e, struct runlist *out, struct engine_step *ret_step)
{
	const uint64_t offset = engine_used(&e->base), n_before = out->n_insns;
	const uint64_t before = e->base.t;
	const struct tnt ahead = e->ahead;
	bool stops, is_lost;

	e->status = take_insn(e, out);
	if (out->n_insns == n_before)
		return false;
	take_branch(e, offset, &ahead);
	if (e->status < 0) {
		/* If it is a branch, that is what the packets do not fit; not what lies behind. */
		if ((e->course.kind != SEG_ON || is_direct(&e->course)) &&
		    reason_of(e, e->status) == PTD_GAP_BAD_FLOW)
			e->ip = e->course.ip;
		return false;
	}
	if (has_used_branch(e, offset))
		take_walks_time(e, offset);
	stops = leaves_kernel(e, offset) || e->base.t > before;
	if (stops)
		engine_stop(&e->base, ENGINE_ASK, 0, ret_step);
	if (offset >= e->base.pause && has_used_branch(e, offset)) {
		engine_pass(&e->base, cut_last(out), ret_step);
		stops = true;
	}
	/* Each instruction counts, also one at which the caller is asked. */
	is_lost = circles(e) || spins(e);
	if (stops || !is_lost)
		return stops;
	engine_lose(&e->base, PTD_GAP_NO_PROGRESS, e->ip, ret_step);
	return true;
}

/* Take an instruction of the way out. Return: as step(). */
static bool step_out(struct insn_engine *e, struct runlist *out, struct engine_step *ret_step)
{
	const struct course *course = &e->course;
	const int r = emit(e, out, course->to[0], NULL);

	if (r == 0 && (course->kind == SEG_ON || course->kind == SEG_NOWHERE) &&
	    !course->sets_cr3) {
		if (!circles(e) && !spins(e))
			return false;
		engine_lose(&e->base, PTD_GAP_NO_PROGRESS, e->ip, ret_step);
		return true;
	}
	e->way_out.is_due = false;
	if (r == 0 && course->kind != SEG_COND)
		return take_timed(e, &e->way_out.event, e->way_out.end, ret_step);
	e->status = r < 0 ? r : -pte_bad_query;
	e->ip = r < 0 ? e->ip : course->ip;
	return false;
}

static void go(struct engine *engine, struct runlist *out, struct engine_step *ret_step)
{
	struct insn_engine *e = (struct insn_engine *)engine;

	for (;;) {
		if (e->way_out.is_due) {
			if (out->n + ENGINE_STEP_RUNS_MAX > out->n_max) {
				engine_stop(engine, ENGINE_FULL, 0, ret_step);
				return;
			}
			if (step_out(e, out, ret_step))
				return;
			continue;
		}
		if (engine->passed) {
			engine_pass(engine, out->n, ret_step);
			return;
		}
		if (e->status < 0) {
			fail(e, ret_step);
			return;
		}
		if (e->status & pts_event_pending) {
			engine->passed = engine_used(engine) > engine->pause;
			engine->circle.n = 0;
			if (take_event(e, ret_step))
				return;
		} else if (e->status & pts_eos) {
			e->status = -pte_eos;
		} else if (out->n + ENGINE_STEP_RUNS_MAX > out->n_max) {
			engine_stop(engine, ENGINE_FULL, 0, ret_step);
			return;
		} else if (step(e, out, ret_step)) {
			return;
		}
	}
}

/*
 * The engine
 */

/* libipt's callback at a packet that it does not know: there are none in the copy but where that
 * ends. */
static int read_packets(struct pt_packet_unknown *unknown, const struct pt_config *config,
			const uint8_t *at, void *context)
{
	struct insn_engine *e = context;
	const int r = ipt_copy_go_on(&e->copy, (uint64_t)(at - config->begin) - IPT_COPY_LEAD,
				     engine_used(&e->base));

	if (r < 0 && r != -EBADMSG)
		e->base.error = r;
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

/* Make libipt's decoder over a copy of the packets. */
static int init(struct engine *engine)
{
	struct insn_engine *e = (struct insn_engine *)engine;
	const struct engine_config *config = &engine->config;
	struct pt_config c;

	if (config->pt.size == 0)
		return 0;
	if (ipt_copy_init(&e->copy, &config->pt, 0, engine->errata, config->has_events) < 0)
		return -ENOMEM;
	pt_config_init(&c);
	c.begin = e->copy.bytes - IPT_COPY_LEAD;
	c.end = e->copy.bytes + config->pt.size;
	c.flags.variant.insn.enable_tick_events = 1;
	c.decode.callback = read_packets;
	c.decode.context = e;
	c.mtc_freq = config->mtc_freq;
	c.nom_freq = config->nom_freq;
	c.cpuid_0x15_eax = config->cpuid_15_eax;
	c.cpuid_0x15_ebx = config->cpuid_15_ebx;
	set_filters(&c, config->filters, config->n_filters);
	set_errata(&c, engine->errata);
	e->reads_ahead = reads_ahead();
	e->decoder = pt_insn_alloc_decoder(&c);
	/* Its image has no sections: libipt asks for all code. */
	if (!e->decoder || pt_image_set_callback(pt_insn_get_image(e->decoder), read_code, e) < 0)
		return -ENOMEM;
	return 0;
}

static void deinit(struct engine *engine)
{
	struct insn_engine *e = (struct insn_engine *)engine;

	pt_insn_free_decoder(e->decoder);
	ipt_copy_deinit(&e->copy);
}

const struct engine_ops engine_insn = {
	.name = "insn",
	.size = sizeof(struct insn_engine),
	.init = init,
	.deinit = deinit,
	.go = go,
	.used = used,
	.forget = forget,
	.go_on_at = go_on_at,
	.sync_at = sync_at,
};
