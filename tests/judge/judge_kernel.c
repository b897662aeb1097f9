/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "tests/judge/judge.h"

#include <inttypes.h>

/* A system call whose number is not known. */
#define NO_NUMBER UINT64_MAX

void judge_kernel_insn(struct judge *judge, const struct code *code)
{
	if (judge->call_step == CALL_DUE)
		judge_fault(judge,
			    "the system call at %#" PRIx64
			    " is not followed by a timestamp, a cpu and marker 25",
			    judge->call.pc);
	if (judge->call_step == CALL_INSIDE)
		return;
	judge->call_step = CALL_NONE;
	if (judge->n_events > 0 || !code_is_syscall(code))
		return;
	judge->call = *code;
	judge->call_number = NO_NUMBER;
	judge->call_step = judge_has(judge, FILE_TYPE_SYSCALLS) ? CALL_DUE : CALL_KNOWN;
}

/* Return: whether the record may stand between a system call and its kernel part. */
static bool may_precede_kernel(const struct judge *judge, const struct record *rec)
{
	if (rec->type != RECORD_MARKER)
		return rec->type == RECORD_ENCODING;
	switch (rec->size) {
	case MARKER_TIME:
	case MARKER_CPU:
		return judge->call_number == NO_NUMBER;
	case MARKER_FUNC_ID:
	case MARKER_FUNC_ARGUMENT:
	case MARKER_THREAD_SWITCH:
	case MARKER_UNSCHEDULE ... MARKER_UNSCHEDULE + 2:
		return true;
	default:
		return false;
	}
}

void judge_kernel_other(struct judge *judge, const struct record *rec)
{
	if (rec->type == RECORD_MARKER && rec->size >= MARKER_SYSCALL &&
	    rec->size <= MARKER_SYSCALL_END)
		return;
	if (judge->call_step == CALL_DUE) {
		const bool is_pair = rec->type == RECORD_MARKER &&
				     (rec->size == MARKER_TIME || rec->size == MARKER_CPU);
		/* The thread may end here, or what follows may be lost. */
		const bool is_end = rec->type == RECORD_EXIT || rec->type == RECORD_FOOTER ||
				    record_is_marker(rec, MARKER_WINDOW);

		if (!is_pair && !is_end)
			judge_fault(judge,
				    "the system call at %#" PRIx64
				    " is not followed by a timestamp, a cpu and marker 25",
				    judge->call.pc);
		if (!is_pair)
			judge->call_step = CALL_NONE;
	} else if (judge->call_step == CALL_KNOWN && !may_precede_kernel(judge, rec)) {
		judge->call_step = CALL_NONE;
	}
}

static void judge_number(struct judge *judge, uint64_t number)
{
	if (judge->call_step != CALL_DUE)
		judge_fault(judge, "marker 25 (system call) does not follow a system call");
	else if (judge->last_marker != MARKER_CPU)
		judge_fault(judge,
			    "marker 25 (system call) comes right after a timestamp and a cpu");
	judge->call_step = CALL_KNOWN;
	judge->call_number = number;
	judge->flow.syscall = (int64_t)number;
}

static void judge_start(struct judge *judge, uint64_t number)
{
	if (judge->call_step == CALL_INSIDE)
		judge_fault(judge, "kernel parts (marker 27) do not nest");
	else if (judge->call_step != CALL_KNOWN)
		judge_fault(judge, "marker 27 (kernel part) does not follow a system call");
	else if (number != judge->call_number)
		judge_fault(judge, "marker 27 (kernel part) is %#" PRIx64 ", not %#" PRIx64, number,
			    judge->call_number);
	judge->call_number = number;
	judge->call_step = CALL_INSIDE;
	judge->flow.state = FLOW_ANYWHERE;
}

/* The kernel's part of a system call is over: the thread goes on behind the call. */
static void judge_end(struct judge *judge, uint64_t number)
{
	struct flow *flow = &judge->flow;

	if (judge->call_step != CALL_INSIDE) {
		judge_fault(judge, "marker 28 (end of a kernel part) has no marker 27");
		return;
	}
	judge->call_step = CALL_NONE;
	if (number != judge->call_number)
		judge_fault(judge,
			    "marker 28 (end of a kernel part) is %#" PRIx64
			    ", but its marker 27 %#" PRIx64,
			    number, judge->call_number);
	if (judge_has(judge, FILE_TYPE_KERNEL_DATA | FILE_TYPE_WHOLE) && flow->state == FLOW_INSN &&
	    !code_is_indirect(&flow->last))
		judge_fault(judge, "a kernel part ends with an indirect branch");
	if (judge->call.class == CODE_EMPTY) {
		flow->state = FLOW_ANYWHERE;
		return;
	}
	flow->state = FLOW_INSN;
	flow->last = judge->call;
	flow->wrong_fall = false;
	flow->next = code_end(&judge->call);
}

static void judge_event(struct judge *judge, uint64_t pc)
{
	if (pc == 0)
		judge_fault(judge, "marker 43 (hardware event) does not carry the interrupted pc");
	else if (!judge_flow_event(&judge->flow, pc))
		judge_fault(judge, "%s", judge->flow.why);
	if (judge->n_events == MEMTRACE_EVENTS_MAX) {
		judge_fault(judge, "hardware events (marker 43) nest deeper than %d",
			    MEMTRACE_EVENTS_MAX);
		return;
	}
	judge->interrupted[judge->n_events++] = pc;
}

static void judge_return(struct judge *judge, uint64_t value)
{
	uint64_t pc;

	if (value == 0)
		judge_fault(judge, "marker 44 (return from a hardware event) is 0");
	if (judge->n_events == 0) {
		judge_fault(judge, "marker 44 (return from a hardware event) has no marker 43");
		return;
	}
	pc = judge->interrupted[--judge->n_events];
	judge_flow_return(&judge->flow, pc);
}

void judge_kernel_marker(struct judge *judge, const struct record *rec)
{
	switch (rec->size) {
	case MARKER_SYSCALL:
		judge_number(judge, rec->addr);
		break;
	case MARKER_MAYBE_BLOCKING:
		if (judge->last_marker != MARKER_SYSCALL)
			judge_fault(judge,
				    "marker 26 (maybe blocking) comes right after marker 25");
		break;
	case MARKER_SYSCALL_START:
		judge_start(judge, rec->addr);
		break;
	case MARKER_SYSCALL_END:
		judge_end(judge, rec->addr);
		break;
	case MARKER_HARDWARE_EVENT:
		judge_event(judge, rec->addr);
		break;
	default:
		judge_return(judge, rec->addr);
		break;
	}
}
