/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "tests/judge/judge_flow.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#define TAKEN   48
#define UNTAKEN 49

/* x86-64 numbers. After an execve no handler of the old program is ever returned from. */
#define SYS_RT_SIGRETURN 15
#define SYS_EXECVE       59
#define SYS_EXECVEAT     322

_printf_(2, 3) static bool refuse(struct flow *flow, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	(void)vsnprintf(flow->why, sizeof(flow->why), format, ap);
	va_end(ap);
	return false;
}

/* What came after an instruction is not what it led to: may it be, and if not, why not? */
static bool judge_successor(struct flow *flow, uint64_t pc, bool is_signal)
{
	const struct code *last = &flow->last;
	const char *what = is_signal ? "the interrupted pc" : "the next instruction";

	if (last->class == CODE_UNKNOWN)
		return true;
	/* A restarted system call, a string instruction that was not done. */
	if (is_signal && pc == last->pc && !code_is_branch(last))
		return true;

	if (flow->wrong_fall)
		return refuse(flow,
			      "a conditional jump to its own fall-through counts as taken (48), "
			      "but the one at %#" PRIx64 " has type 49",
			      last->pc);
	if (last->class == CODE_JUMP_COND && flow->last_type == TAKEN)
		return refuse(flow,
			      "the conditional jump at %#" PRIx64 " is taken (48) to %#" PRIx64
			      ", but %s is %#" PRIx64,
			      last->pc, flow->next, what, pc);
	if (last->class == CODE_JUMP_COND)
		return refuse(flow,
			      "the conditional jump at %#" PRIx64 " is untaken (49) and falls "
			      "through to %#" PRIx64 ", but %s is %#" PRIx64,
			      last->pc, flow->next, what, pc);
	if (code_is_indirect(last))
		return refuse(flow,
			      "marker 29 says that the indirect branch at %#" PRIx64
			      " goes to %#" PRIx64 ", but %s is %#" PRIx64,
			      last->pc, flow->next, what, pc);
	if (code_is_branch(last))
		return refuse(flow,
			      "the direct branch at %#" PRIx64 " goes to %#" PRIx64
			      ", but %s is %#" PRIx64,
			      last->pc, flow->next, what, pc);
	if (last->class == CODE_REP && pc == last->pc)
		return refuse(flow,
			      "the rep string instruction at %#" PRIx64 " has more than one "
			      "record",
			      pc);
	if (code_is_syscall(last))
		return refuse(flow,
			      "the system call at %#" PRIx64 " lands elsewhere than behind "
			      "itself without a marker 1: %s is %#" PRIx64,
			      last->pc, what, pc);
	return refuse(flow,
		      "control flow is broken: after the instruction at %#" PRIx64
		      " comes %#" PRIx64 ", but %s is %#" PRIx64,
		      last->pc, flow->next, what, pc);
}

/* A system call has changed the flow: does it return from the innermost signal, to the right pc? */
static bool judge_landing(struct flow *flow, uint64_t pc)
{
	uint64_t interrupted;

	if (flow->syscall >= 0 && flow->syscall != SYS_RT_SIGRETURN) {
		if (flow->syscall == SYS_EXECVE || flow->syscall == SYS_EXECVEAT)
			flow->depth = 0;
		return true;
	}
	/* Data may begin inside a handler. */
	if (flow->depth == 0)
		return true;

	interrupted = flow->interrupted[(flow->n_signals - 1) % FLOW_DEPTH];
	/* Restarted without a handler: the signal that is still open stays so. */
	if (flow->syscall < 0 && pc == flow->last.pc && pc != interrupted)
		return true;
	flow->depth--;
	flow->n_signals--;
	if (pc == interrupted)
		return true;
	return refuse(flow,
		      "the return from a signal (marker 1) resumes at %#" PRIx64
		      ", but the signal (marker 0) interrupted %#" PRIx64,
		      pc, interrupted);
}

/* The outermost hardware event is over: does control go on where it interrupted? */
static bool judge_resumption(struct flow *flow, uint64_t pc)
{
	if (flow->is_cut)
		return refuse(flow,
			      "marker 44 (return from a hardware event) does not follow an "
			      "indirect branch, but the instruction at %#" PRIx64,
			      flow->last.pc);
	if (pc != flow->next)
		return refuse(flow,
			      "the return from a hardware event (marker 44) resumes at %#" PRIx64
			      ", but the event (marker 43) interrupted %#" PRIx64,
			      pc, flow->next);
	if (flow->returned != 0 && flow->returned != pc)
		return refuse(flow,
			      "the branch before marker 44 (return from a hardware event) goes to "
			      "%#" PRIx64 ", but the event (marker 43) interrupted %#" PRIx64,
			      flow->returned, pc);
	return true;
}

static inline bool arrive(struct flow *flow, uint64_t pc, bool is_signal)
{
	if (flow->is_free)
		return true;
	switch (flow->state) {
	case FLOW_RESUMING:
		return judge_resumption(flow, pc);
	case FLOW_DIVERTED:
		if (pc == flow->next)
			return true;
		return refuse(flow,
			      "the branch before markers 44 and 1 goes to %#" PRIx64
			      ", but the next instruction is %#" PRIx64,
			      flow->next, pc);
	case FLOW_INSN:
		if (pc == flow->next && !flow->wrong_fall)
			return true;
		return judge_successor(flow, pc, is_signal);
	case FLOW_LANDING:
		return judge_landing(flow, pc);
	default:
		return true;
	}
}

static int64_t syscall_number(const struct flow *flow, const struct code *code)
{
	/* The other two have the numbers of the 32-bit interface. */
	if (code->class != CODE_SYSCALL || flow->state != FLOW_INSN ||
	    flow->last.class != CODE_LOAD_EAX)
		return -1;
	return flow->last.link;
}

bool judge_flow_insn(struct flow *flow, const struct code *code, uint16_t type, uint64_t target)
{
	const bool good = arrive(flow, code->pc, false);

	if (code_is_syscall(code))
		flow->syscall = syscall_number(flow, code);
	flow->state = FLOW_INSN;
	flow->last = *code;
	flow->last_type = type;
	flow->wrong_fall = false;
	flow->next = code_end(code);
	if (code_is_indirect(code)) {
		flow->next = target;
	} else if (code_is_branch(code) && type != UNTAKEN) {
		flow->next = code_target(code);
	} else if (code->class == CODE_JUMP_COND) {
		flow->wrong_fall = code->link == 0;
	}
	return good;
}

bool judge_flow_signal(struct flow *flow, uint64_t pc)
{
	const bool good = arrive(flow, pc, true);

	flow->interrupted[flow->n_signals++ % FLOW_DEPTH] = pc;
	if (flow->depth < FLOW_DEPTH)
		flow->depth++;
	flow->state = FLOW_HANDLER;
	if (pc == 0)
		return refuse(flow, "marker 0 (signal) does not carry the interrupted pc");
	return good;
}

bool judge_flow_transfer(struct flow *flow, uint64_t pc)
{
	const enum flow_state before = flow->state;
	const struct code *last = &flow->last;

	if (before == FLOW_RESUMING) {
		const uint64_t interrupted = flow->next;

		flow->state = flow->returned ? FLOW_DIVERTED : FLOW_ANYWHERE;
		flow->next = flow->returned;
		if (pc == interrupted)
			return true;
		return refuse(flow,
			      "marker 1 behind marker 44 does not carry the pc that the event "
			      "(marker 43) interrupted, %#" PRIx64 ", but %#" PRIx64,
			      interrupted, pc);
	}
	flow->state = FLOW_LANDING;
	if (before == FLOW_ANYWHERE) {
		flow->syscall = -1;
		return true;
	}
	if (before != FLOW_INSN || (!code_is_syscall(last) && last->class != CODE_UNKNOWN)) {
		flow->state = FLOW_ANYWHERE;
		return refuse(flow,
			      "marker 1 (return from a signal, execve) does not follow a system "
			      "call instruction");
	}
	if (pc != code_end(last))
		return refuse(flow,
			      "marker 1 does not carry the pc after the system call, %#" PRIx64
			      ", but %#" PRIx64,
			      code_end(last), pc);
	return true;
}

void judge_flow_switch(struct flow *flow)
{
	flow->state = FLOW_ANYWHERE;
	flow->depth = 0;
}

bool judge_flow_event(struct flow *flow, uint64_t pc)
{
	const bool good = arrive(flow, pc, true);

	flow->state = FLOW_ANYWHERE;
	return good;
}

void judge_flow_return(struct flow *flow, uint64_t pc)
{
	const bool is_known = flow->state == FLOW_INSN && flow->last.class != CODE_UNKNOWN;

	/* Behind another marker 44, what was before that counts. */
	if (flow->state != FLOW_RESUMING) {
		flow->is_cut = is_known && !flow->is_free && !code_is_indirect(&flow->last);
		flow->returned = is_known && code_is_indirect(&flow->last) ? flow->next : 0;
	}
	flow->state = FLOW_RESUMING;
	flow->next = pc;
}

/* DynamoRIO's basic_counts refuses a file whose windows begin with another than 0, if it has more
 * than one: it takes such a file for one window of a trace that was split. */
static bool judge_first_window(struct flow *flow, uint64_t id)
{
	if (!flow->has_window) {
		flow->has_window = true;
		flow->is_split = id != 0;
		flow->first_window = id;
	}
	if (!flow->is_split || id == flow->first_window)
		return true;
	flow->is_split = false; /* said once */
	return refuse(flow,
		      "a file's first marker 14 (window) is 0 if another follows, not %" PRIu64,
		      flow->first_window);
}

bool judge_flow_window(struct flow *flow, uint64_t id)
{
	const bool may_follow = judge_first_window(flow, id);
	const uint64_t before = flow->window;

	if (id == before)
		return true;
	/* What was lost may hold signals and returns from them: those still open are unknown now.
	 */
	flow->window = id;
	flow->n_gaps += flow->state != FLOW_ANYWHERE;
	flow->state = FLOW_ANYWHERE;
	flow->depth = 0;
	if (id < before)
		return refuse(flow,
			      "marker 14 (window) has an ordinal, but %" PRIu64 " follows %" PRIu64,
			      id, before);
	return may_follow;
}
