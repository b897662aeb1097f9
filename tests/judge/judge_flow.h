/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Flow
 *
 * The control flow of one thread, as DynamoRIO's checker of traces demands it: every instruction
 * lies where its predecessor leads, unless a marker that permits something else stands between the
 * two.
 *
 * Signals nest: marker 0 pushes the interrupted pc, and marker 1 pops it, since the thread must
 * resume at the innermost one. A marker 1 that belongs to another system call (its number is known,
 * because the instruction before loads it into eax), or that restarts its own instruction, pops
 * none. A handler that is left by longjmp() leaves its pc on the stack. When the thread then
 * resumes at the pc of an outer signal, that is reported, as DynamoRIO's checker does.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "tests/judge/judge_code.h"

/* Interrupted pcs kept; of signals nested deeper, or never returned from, the oldest is dropped. */
#define FLOW_DEPTH 64

enum flow_state {
	FLOW_ANYWHERE, /* start of the file, a gap: any pc may come */
	FLOW_INSN,     /* after an instruction */
	FLOW_HANDLER,  /* after marker 0: the handler comes, wherever it is */
	FLOW_LANDING,  /* after marker 1: where the system call lands */
	FLOW_RESUMING, /* after marker 44: the pc that was interrupted comes, which is next */
	FLOW_DIVERTED, /* after markers 44 and 1: what the branch before them led to comes, next */
};

struct flow {
	enum flow_state state;
	struct code last;   /* the last instruction, unless FLOW_ANYWHERE */
	uint16_t last_type; /* its record type */
	bool wrong_fall;    /* it jumps to its own fall-through and is recorded as untaken */
	uint64_t next;      /* where it goes; without meaning for class CODE_UNKNOWN */
	bool is_cut;        /* no branch stands before markers 44 */
	uint64_t returned;  /* where the branch before markers 44 goes; 0: it is not known */
	int64_t syscall;    /* number of the system call that `last` makes, -1 if not known */

	/* A ring; the innermost is at (n_signals - 1) % FLOW_DEPTH. */
	uint64_t interrupted[FLOW_DEPTH];
	uint64_t n_signals;
	unsigned depth; /* how many of the ring are open */
	uint64_t window;
	bool has_window;       /* a marker 14 came */
	bool is_split;         /* the first one was not 0: the file is one part of a split trace */
	uint64_t first_window; /* its value */
	uint64_t n_gaps;       /* changes of the window between instructions */
	bool is_free;          /* instructions were filtered out: any pc may come at any time */
	char why[240];         /* set by what returns false: the rule that was broken */
};

/*
 * Check the next instruction: @code is the code at its pc, @type the type of its record, and
 * @target the value of its marker 29, which counts for indirect branches only.
 *
 * Return: whether it may come here.
 */
_must_check_ bool judge_flow_insn(struct flow *flow, const struct code *code, uint16_t type,
				  uint64_t target);

/* Check a marker 0 with the interrupted @pc. Return: whether @pc would have come next. */
_must_check_ bool judge_flow_signal(struct flow *flow, uint64_t pc);

/*
 * Check a marker 1 with the @pc after the system call; behind a marker 44, with the pc that the
 * hardware event interrupted. Return: whether it may come here.
 */
_must_check_ bool judge_flow_transfer(struct flow *flow, uint64_t pc);

/* Another thread runs: nothing is known of what it did last. */
void judge_flow_switch(struct flow *flow);

/* Check a marker 43 with the interrupted @pc. Return: whether @pc would have come next. */
_must_check_ bool judge_flow_event(struct flow *flow, uint64_t pc);

/*
 * Take a marker 44, which closes the marker 43 with @pc: that must come next, unless a marker 1
 * follows, and the last instruction must be a branch that can have left the kernel. If nothing
 * follows, the thread ended in the kernel.
 */
void judge_flow_return(struct flow *flow, uint64_t pc);

/* Check a marker 14. Return: whether window @id may follow. */
_must_check_ bool judge_flow_window(struct flow *flow, uint64_t id);

/* Return: whether a branch is waiting for its successor. */
static inline bool judge_flow_in_branch(const struct flow *flow)
{
	return flow->state == FLOW_INSN && code_is_branch(&flow->last);
}
