/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The rules
 *
 * What a thread executes is looked at where control leaves a function, or may do so: at calls,
 * returns and marks, and wherever the next instruction is of another function than the last one.
 * What happened there depends on the last instruction, and on the address A at which control
 * arrives. The first row that fits counts. "Open" is what is on the stack, "inner" what is inside
 * of that. "Beginning" is the first instruction of a symbol or, of code without symbols, one that
 * was called before. Code of the kernel that does not begin a symbol is a thunk if it is called or
 * jumped to and jumps on at once: for modules, the kernel makes thunks that have none. All code
 * that was made of a function of a script is the same function, but for its beginnings: what runs
 * goes on in the middle of the other.
 *
 *  last           A                                        what it is
 *
 *  nothing        any                                      the function of A begins, or was open
 *
 *  call           behind the call                          nothing: the code finds out where it is
 *  call           goexit0, from mcall                      the stack has ended; the scheduler's
 *  call           any, from mcall or morestack             it runs on the scheduler's stack
 *  call           same function, not its beginning         a local call: silent; if it is open
 *                                                          inside the function, inner ones are left
 *  call           any, from code without symbol, which     inner ones are unwound, and what it
 *                 made it before                           called; a call
 *  call           inside a thunk, or a thunk for returns   a local call: silent
 *  call           a stub, a thunk, a prefix                a call: silent until that leads on
 *  call           any                                      a call
 *
 *  return         any, from a function that changes stacks another stack, see stackpool.h
 *  return         a thunk for returns                      nothing: it will return (uretprobes)
 *  return         any, from a call within a thunk          as an indirect jump
 *  return         where the innermost returns to           a return
 *  return         not a beginning, from a local call       as from the function itself; or nothing
 *  return         a beginning, from what a prefix called   the function that was called is entered
 *  return         any, from a handler                      the handler returned to its restorer,
 *                                                          unless it was left by a jump: see below
 *  return         a handler of OCaml's that is installed   inner ones are unwound
 *  return         any, from what began a stack             a return
 *  return         where an outer one returns to            inner ones are unwound; a return
 *  return         a beginning, from what begins its        it is left; then as a return from its
 *                 caller anew                              caller
 *  return         a beginning                              a tail call (push, ret; retpolines)
 *  return         where its function passed its caller     another stack, see stackpool.h
 *  return         inside one that was left by a jump       the jump was a call: what is in its
 *                                                          place is left, and it is entered again
 *  return         same object, without symbol, from code   nothing: the jump was a call
 *                 to which a jump led
 *  return         any, if the caller is not known          a return; the function of A was open
 *  return         inside the innermost                     nothing (a handler of an exception)
 *  return         inside an outer one                      inner ones are unwound
 *  return         code of a runtime, without symbol, of    inner ones are unwound to the innermost
 *                 which some is open                       of that
 *  return         any, the first time                      all are unwound; that of A was open
 *  return         any                                      a gap
 *
 *  indirect jump  a handler of OCaml's that is installed   inner ones are unwound
 *  any jump       same function, or its cold part          nothing
 *  any jump       same object, without symbol, not called  nothing
 *  any jump       a beginning, from what begins its        it is left; then as a jump from its
 *                 caller anew                              caller
 *  any jump       a thunk                                  nothing: it will jump on
 *  direct jump    a beginning, from a prefix               the function that was called is entered
 *  any jump       any, from a function that changes stacks another stack, see stackpool.h
 *  indirect jump  where an open one returns to             inner ones are unwound; a return
 *  indirect jump  where its function passed its caller     another stack, see stackpool.h
 *  indirect jump  inside an open one                       inner ones are unwound (longjmp)
 *  indirect jump  inside one that was left by a jump, not  as a return there
 *                 in the place of the innermost
 *  direct jump    any, from a stub                         nothing (lazy binding)
 *  any jump       any, from a stub                         the function that was called is entered
 *  any jump       any                                      a tail call; so is falling through
 *
 *  system call    the kernel's code                        the kernel is entered
 *  interruption   the kernel's code                        the kernel is entered
 *  interruption   where it was                             nothing: as from the instruction before
 *  iret, sysret   any                                      the kernel is left; then as "untraced"
 *
 *  untraced       behind the system call, or itself        nothing
 *  untraced       where a handler interrupted the thread   inner ones are unwound; it is left
 *  untraced       a beginning, from a restorer             the handler is left; a call, or the next
 *                                                          signal's handler
 *  untraced       inside an open one, from a restorer      the handler is left; unwound to that
 *  untraced       a beginning                              a signal's handler
 *  untraced       inside an open one                       inner ones are unwound
 *  untraced       any                                      a gap
 *
 *  gap            any                                      all are ended; as "nothing"
 *
 * Of an open function and one that was left by a jump, the inner one counts. "Made it before" is:
 * what the call entered is open, and between that and the innermost all is such code, but the code
 * that calls was not entered.
 *
 * If the function that returns is the lowest one that is known, its caller is not. Behind a gap, if
 * one of those that were open before it would have returned to A, the one below that is open still.
 * Else the function of A was called in the gap, or was open at the first instruction.
 */

#include "decoder/calls/callthread.h"

#include <errno.h>

#include "decoder/calls/logged.h"
#include "decoder/calls/stackpool.h"
#include "decoder/calls/step.h"
#include "decoder/calls/trap.h"

/* Frames that may be looked at in vain: see step.c. */
#define SEARCH_ROOM_PER_BATCH (UINT64_C(1) << 16)

/* Handlers of exceptions that are kept for one stack; for a deep one, more. */
#define TRAPS_MIN       64
#define TRAPS_PER_FRAME 8

static bool is_kernel(uint64_t ip)
{
	return ip >> 63;
}

/* --- arrivals from instructions --------------------------------------------------------------- */

/* Return: whether a call is one within a thunk, or of a thunk for returns. */
static bool is_call_in_thunk(const struct step *s)
{
	return step_has_role(s, FUNCTION_RET) ||
	       (step_has_role(s, FUNCTION_THUNK) && !step_is_beginning(s));
}

static void arrive_by_call(struct step *s)
{
	struct frame frame = { .ret = step_next_ip(s), .how = PTD_CALL_BY_CALL };

	if (s->ip == frame.ret)
		return;
	if ((step_top(s)->kind == FRAME_PARK || step_top(s)->kind == FRAME_GROW) &&
	    s->thread->stack->n_too_deep == 0) {
		stackpool_park(s);
		return;
	}
	if (is_call_in_thunk(s)) {
		frame.function = s->code;
		frame.kind = FRAME_LOCAL;
	} else if (step_is_named(s) && !step_is_beginning(s) && step_is_inside(s, step_top(s))) {
		step_drop_locals(s, frame.ret);
		frame.function = step_top(s)->function;
		frame.kind = FRAME_LOCAL;
	} else {
		step_drop_abandoned(s, frame.ret);
		frame.function = step_begin(s);
		frame.kind = step_kind(s);
	}
	step_enter(s, &frame);
}

/* Frame @i returns, and the inner ones did not. */
static void pass_over(struct step *s, size_t i)
{
	stackpool_pass(s);
	step_leave_to(s, i + 1, PTD_CALL_BY_UNWINDING);
	step_return(s);
}

/*
 * A function begins. The innermost one may have been called to find out which code is to begin: its
 * caller then goes on there, as if it had not called.
 *
 * Return: whether that was so. The innermost one is left.
 */
static bool leave_restart(struct step *s)
{
	const struct callstack *stack = s->thread->stack;

	if (stack->frames.n < 2 || stack->n_too_deep > 0 ||
	    functions_get(&s->world->functions, step_top(s)->function)->role != FUNCTION_RESTART)
		return false;
	step_leave(s, PTD_CALL_BY_UNWINDING);
	return true;
}

/*
 * Control may come back into a function that was left by a jump, in frame @n or inside that.
 *
 * Return: whether it does.
 */
static bool reopen(struct step *s, size_t n, bool is_ambiguous)
{
	const size_t i = step_find_jumped(s, n);

	if (i == STEP_NONE)
		return false;
	callstack_reopen(s->thread->stack, &s->world->list, &s->world->functions, &s->place, i,
			 is_ambiguous);
	return true;
}

/* A return to an address that the innermost frame does not return to. */
static void arrive_by_other_return(struct step *s)
{
	struct callstack *stack = s->thread->stack;
	size_t i, trap;

	i = step_find_trap(s, &trap);
	if (i != STEP_NONE) {
		step_catch(s, i, trap);
		return;
	}
	if (stackpool_disown(s))
		return;
	/* What began a stack returns to what nothing had called. */
	if (stack->is_whole && stack->frames.n == 1) {
		step_return(s);
		return;
	}
	i = step_find_returning(s, stack->frames.items, stack->frames.n);
	if (i != STEP_NONE) {
		pass_over(s, i);
		return;
	}
	if (step_is_beginning(s)) {
		(void)leave_restart(s);
		if (step_top(s)->kind == FRAME_LOCAL)
			step_leave(s, PTD_CALL_BY_RETURN);
		if (step_top(s)->kind == FRAME_STUB)
			step_name_stub(s);
		else if (!step_is_inside(s, step_top(s)))
			step_tail(s);
		return;
	}
	if (stackpool_learn(s))
		return;
	/* Only the lowest frame does not know where it returns to. */
	i = step_top(s)->ret == 0 ? STEP_NONE : step_find_open(s, stack->frames.n);
	if (reopen(s, i == STEP_NONE ? 0 : i + 1, i != STEP_NONE) || step_is_after_silent_jump(s))
		return;
	if (step_top(s)->ret == 0) {
		step_return(s);
		return;
	}
	if (i == STEP_NONE)
		i = step_find_unnamed(s, stack->frames.n);
	if (i != STEP_NONE)
		step_unwind_to(s, i);
	else
		step_lose(s);
}

/*
 * Control goes on from the prefix of a function to that, if the innermost frame is a prefix's.
 *
 * Return: whether it does.
 */
static bool leave_prefix(struct step *s)
{
	const struct frame *top = step_top(s);

	if (!top || top->kind != FRAME_STUB || !step_is_named(s) || !step_is_beginning(s) ||
	    functions_get(&s->world->functions, top->function)->role != FUNCTION_PREFIX)
		return false;
	step_name_stub(s);
	return true;
}

static void arrive_by_jump(struct step *s, bool is_indirect)
{
	struct callstack *stack = s->thread->stack;
	const struct frame *top = step_top(s);
	bool begins;
	size_t i, j, n, trap;

	if (is_indirect && stack->traps.n > 0 && stack->n_too_deep == 0) {
		i = step_find_trap(s, &trap);
		if (i != STEP_NONE) {
			step_catch(s, i, trap);
			return;
		}
	}
	if (step_has_role(s, FUNCTION_COLD) && !is_indirect)
		step_join(s);
	if (top->kind == FRAME_RESTORER || step_is_inside(s, top))
		return;
	if (!is_indirect && leave_prefix(s))
		return;
	/* Lazy binding: the stub jumps to the beginning of the PLT, which jumps on. */
	if (top->kind == FRAME_STUB && !is_indirect)
		return;
	begins = step_is_beginning(s);
	if (begins && leave_restart(s)) {
		arrive_by_jump(s, is_indirect);
		return;
	}
	if (!step_is_named(s) && !begins && s->last->block->object == s->run->block->object)
		return;
	if (step_has_role(s, FUNCTION_RET) || (step_is_thunk(s) && top->kind != FRAME_STUB))
		return;
	if (top->kind >= FRAME_SWAP && step_kind(s) != top->kind) {
		stackpool_leave(s);
		return;
	}
	if (is_indirect && !begins) {
		i = step_find_returning(s, stack->frames.items, stack->frames.n);
		if (i != STEP_NONE) {
			pass_over(s, i);
			return;
		}
		if (stackpool_learn(s))
			return;
		i = step_find_open(s, stack->frames.n);
		n = stack->frames.n - 1;
		/* A jump from what is in its place is a tail call back. */
		j = step_find_jumped(s, i == STEP_NONE ? 0 : i + 1);
		if (j != STEP_NONE && stack->jumped.items[j].frame < n &&
		    reopen(s, stack->jumped.items[j].frame, i != STEP_NONE))
			return;
		if (i != STEP_NONE) {
			step_unwind_to(s, i);
			return;
		}
	}
	if (stack->n_too_deep > 0)
		return;
	if (top->kind == FRAME_STUB)
		step_name_stub(s);
	else
		step_tail(s);
}

/*
 * A function called within itself, to return, or to go on elsewhere in itself: the compiler has put
 * a thunk into it.
 *
 * Return: whether it goes on.
 */
static bool leave_local(struct step *s)
{
	if (step_top(s)->kind != FRAME_LOCAL || step_top(s)->ret == s->ip || step_is_beginning(s))
		return false;
	while (step_top(s)->kind == FRAME_LOCAL && s->thread->stack->frames.n > 1)
		step_leave(s, PTD_CALL_BY_RETURN);
	return step_top(s)->ret != s->ip && step_is_inside(s, step_top(s));
}

/*
 * The innermost calls within a thunk do not return to where they were made: they are over.
 *
 * Return: whether the thunk stands for an indirect branch.
 */
static bool leave_thunk(struct step *s)
{
	bool is_branch = false;

	for (;;) {
		const struct frame *top = step_top(s);
		uint8_t role;

		if (top->kind != FRAME_LOCAL || top->ret == s->ip)
			return is_branch;
		role = functions_get(&s->world->functions, top->function)->role;
		if (role != FUNCTION_THUNK && role != FUNCTION_RET)
			return is_branch;
		is_branch = role == FUNCTION_THUNK;
		step_leave(s, PTD_CALL_BY_RETURN);
	}
}

static void arrive_by_return(struct step *s)
{
	struct callstack *stack = s->thread->stack;
	struct frame *top;

	if (step_has_role(s, FUNCTION_RET))
		return;
	if (stack->n_too_deep == 0 && leave_thunk(s)) {
		arrive_by_jump(s, true);
		return;
	}
	if (stack->n_too_deep == 0 && leave_local(s))
		return;
	top = step_top(s);
	if (stack->n_too_deep > 0) {
		stack->n_too_deep--;
	} else if (top->kind >= FRAME_SWAP) {
		stackpool_leave(s);
	} else if (top->ret == s->ip) {
		if (stack->alike.n > 0)
			stackpool_compare(s);
		step_return(s);
		leave_prefix(s);
	} else if (top->kind == FRAME_SIGNAL) {
		if (step_is_beginning(s) || !reopen(s, stack->frames.n - 1, false))
			top->kind = FRAME_RESTORER;
	} else if (stack->alike.n > 0 && stackpool_correct(s)) {
		step_return(s);
	} else {
		arrive_by_other_return(s);
	}
}

/* --- arrivals from untraced code and the kernel ----------------------------------------------- */

/* The thread is interrupted: what it executed last is kept until that is over. */
static void enter_interruption(struct step *s, const struct frame *frame)
{
	struct callstack *stack = s->thread->stack;
	const size_t n = stack->frames.n;

	step_enter(s, frame);
	if (!frame->by_syscall && stack->frames.n > n &&
	    vec_push(&stack->suspended, { .last = *s->last, .frame = n }) < 0)
		step_fail(s, -ENOMEM);
	stack->n_attached = stack->frames.n;
}

static void enter_kernel(struct step *s, uint64_t ret, bool by_syscall)
{
	enter_interruption(
	    s, &(struct frame){ .ret = ret,
				.function = step_begin(s),
				.kind = FRAME_KERNEL,
				.how = by_syscall ? PTD_CALL_BY_SYSCALL : PTD_CALL_BY_INTERRUPT,
				.by_syscall = by_syscall });
}

static void enter_handler(struct step *s, uint64_t ret, bool by_syscall)
{
	enter_interruption(s, &(struct frame){ .ret = ret,
					       .function = step_begin(s),
					       .kind = FRAME_SIGNAL,
					       .how = PTD_CALL_BY_SIGNAL,
					       .by_syscall = by_syscall });
}

/* The innermost frame had interrupted the thread, which goes on as if it had not. */
static void end_interruption(struct step *s, enum ptd_call_how how)
{
	struct callstack *stack = s->thread->stack;
	const size_t n = stack->suspended.n;

	if (n > 0 && stack->suspended.items[n - 1].frame == stack->frames.n - 1) {
		s->again = true;
		s->before = stack->suspended.items[n - 1].last;
	}
	step_leave(s, how);
	if (stack->frames.n == 0) {
		s->again = false;
		step_enter_below(s, false);
	}
}

/* Control arrives in the middle of a function: go on in the open one, or as behind a gap. */
static void go_on_in_open(struct step *s)
{
	const size_t i = step_find_open(s, s->thread->stack->frames.n);

	if (i != STEP_NONE)
		step_unwind_to(s, i);
	else
		step_restart(s);
}

/*
 * A handler returned to another place than where it had interrupted the thread: to the beginning of
 * a function, which the thread is made to call, or which handles the next signal. If that returns
 * to a restorer, it handled one. When it is entered, this is known only of the function that has
 * just handled one.
 */
static void leave_restorer(struct step *s)
{
	struct callstack *stack = s->thread->stack;
	struct frame frame = *step_top(s);
	const uint32_t handler = frame.function;

	step_leave(s, PTD_CALL_BY_SIGNAL);
	if (stack->frames.n == 0) {
		step_enter_below(s, false);
		return;
	}
	if (step_is_beginning(s)) {
		frame = (struct frame){ .ret = frame.ret,
					.function = step_begin(s),
					.kind = FRAME_SIGNAL,
					.by_syscall = frame.by_syscall };
		frame.how = frame.function == handler ? PTD_CALL_BY_SIGNAL : PTD_CALL_BY_CALL;
		step_enter(s, &frame);
		return;
	}
	go_on_in_open(s);
}

/* Control arrives from untraced code, to which it had gone before the instruction at @resume. */
static void arrive_from_untraced(struct step *s, uint64_t resume, bool by_syscall)
{
	size_t i;

	if (s->ip == resume || (by_syscall && s->ip + SYSCALL_SIZE == resume))
		return;
	i = step_find_interrupted(s);
	if (i != STEP_NONE) {
		step_leave_to(s, i + 1, PTD_CALL_BY_UNWINDING);
		end_interruption(s, PTD_CALL_BY_SIGNAL);
		return;
	}
	if (step_top(s)->kind == FRAME_RESTORER) {
		leave_restorer(s);
		return;
	}
	if (step_is_beginning(s) || (!step_is_named(s) && !step_is_inside(s, step_top(s)))) {
		enter_handler(s, resume, by_syscall);
		return;
	}
	go_on_in_open(s);
}

/* iret, sysret, sysexit, retf. */
static void arrive_by_far_return(struct step *s)
{
	const size_t i = step_find_kernel(s);
	struct frame frame;

	if (i == STEP_NONE) {
		step_leave_to(s, 0, PTD_CALL_BY_RETURN);
		step_enter_below(s, false);
		return;
	}
	frame = s->thread->stack->frames.items[i];
	step_leave_to(s, i + 1, PTD_CALL_BY_UNWINDING);
	if (s->ip == frame.ret) {
		end_interruption(s, frame.by_syscall ? PTD_CALL_BY_SYSCALL : PTD_CALL_BY_INTERRUPT);
		return;
	}
	step_leave(s, frame.by_syscall ? PTD_CALL_BY_SYSCALL : PTD_CALL_BY_INTERRUPT);
	if (s->thread->stack->frames.n == 0)
		step_enter_below(s, false);
	else
		arrive_from_untraced(s, frame.ret, frame.by_syscall);
}

/* A system call, int n or the like, and packets stayed on. */
static void arrive_by_trap(struct step *s, bool by_syscall)
{
	if (is_kernel(s->ip))
		enter_kernel(s, step_next_ip(s), by_syscall);
	else
		arrive_from_untraced(s, step_next_ip(s), by_syscall);
}

static void arrive_by_insn(struct step *s)
{
	const uint8_t iclass = step_last_class(s);

	switch (iclass) {
	case PTD_INSN_CALL:
	case PTD_INSN_CALL_INDIRECT:
		arrive_by_call(s);
		break;
	case PTD_INSN_RETURN:
		arrive_by_return(s);
		break;
	case PTD_INSN_RETURN_FAR:
		arrive_by_far_return(s);
		break;
	case PTD_INSN_SYSCALL:
	case PTD_INSN_SYSENTER:
		arrive_by_trap(s, true);
		break;
	case PTD_INSN_INTERRUPT:
	case PTD_INSN_VM:
		arrive_by_trap(s, false);
		break;
	default:
		arrive_by_jump(s, iclass == PTD_INSN_JUMP_INDIRECT);
		break;
	}
}

static void arrive_after_async(struct step *s)
{
	const uint64_t ip = s->thread->async_ip;

	/* The instruction did not run, so the one before it leads here. */
	if (s->ip == ip)
		arrive_by_insn(s);
	else if (is_kernel(s->ip))
		enter_kernel(s, ip, false);
	/* Of an int3 or int n nothing is reported, and the thread goes on behind it. */
	else if (step_last_insn(s)->iclass != PTD_INSN_INTERRUPT || s->ip != step_next_ip(s))
		arrive_from_untraced(s, ip, false);
}

static void arrive_after_off(struct step *s)
{
	switch (step_last_insn(s)->iclass) {
	case PTD_INSN_SYSCALL:
	case PTD_INSN_SYSENTER:
	case PTD_INSN_INTERRUPT:
	case PTD_INSN_VM:
		arrive_from_untraced(s, step_next_ip(s), true);
		break;
	case PTD_INSN_CALL:
	case PTD_INSN_CALL_INDIRECT:
		/* It called code that is filtered out. */
		if (s->ip != step_next_ip(s))
			step_restart(s);
		break;
	default:
		step_restart(s);
	}
}

/* The thread may have run on a CPU whose recording is lost. */
static void arrive_in_slice(struct step *s)
{
	if (step_continues(s))
		arrive_by_insn(s);
	else
		step_restart(s);
}

static void arrive(struct step *s)
{
	s->place.to = s->ip;
	s->place.from = s->thread->after == CALL_AFTER_NOTHING ? 0 : step_last_ip(s);
	switch (s->thread->after) {
	case CALL_AFTER_NOTHING:
		step_start(s);
		break;
	case CALL_AFTER_INSN:
		if (s->thread->is_new_slice)
			arrive_in_slice(s);
		else
			arrive_by_insn(s);
		break;
	case CALL_AFTER_ASYNC:
		arrive_after_async(s);
		break;
	case CALL_AFTER_OFF:
		arrive_after_off(s);
		break;
	case CALL_AFTER_ABORT:
		go_on_in_open(s);
		break;
	}
	while (s->again && s->world->list.r == 0) {
		s->again = false;
		s->last = &s->before;
		s->place.from = step_last_ip(s);
		arrive_by_insn(s);
	}
	s->thread->after = CALL_AFTER_INSN;
	s->thread->is_new_slice = false;
}

/* --- batches ---------------------------------------------------------------------------------- */

/* Control falls through from one function into another within the run. */
static void take_mixed(struct step *s)
{
	const struct ptd_run *run = s->run;
	const struct ptd_insn *insns = run->block->insns + run->first;
	const uint64_t n = s->place.n;

	for (size_t k = 1; k < run->n && s->world->list.r == 0; k++) {
		struct ptd_run before = *run;
		uint32_t code = CODE_NONE;

		if (insns[k].symbol == insns[k - 1].symbol)
			continue;
		step_fail(s, functions_code(&s->world->functions, s->batch, run->block,
					    run->first + k, &code));
		if (code == s->code || code == CODE_NONE)
			continue;
		before.n = (uint16_t)k;
		s->last = &before;
		s->insn = run->first + k;
		s->ip = ptd_run_ip(run, k);
		step_set_code(s, code);
		s->place.n = n + k;
		s->place.from = step_last_ip(s);
		s->place.to = s->ip;
		arrive_by_jump(s, false);
	}
	s->last = NULL;
}

/* Return: whether @stack may have another handler. The number of frames bounds theirs, and is
 * itself bounded for all stacks together. */
static bool has_room_for_trap(const struct callstack *stack)
{
	return stack->traps.n < TRAPS_MIN + TRAPS_PER_FRAME * stack->frames.n;
}

/* Handlers of exceptions are installed, or no longer. */
static void take_traps(struct step *s)
{
	const struct ptd_run *run = s->run;
	struct callstack *stack = s->thread->stack;
	const size_t frame = stack->frames.n - 1;
	int64_t handler;

	if (stack->n_too_deep > 0)
		return;
	stack->n_attached = frame + 1;
	for (size_t i = run->first; i <= step_last_index(run); i++) {
		const enum trap_op op = trap_op_at(run->block, i, &handler);

		if (op == TRAP_PUSH && has_room_for_trap(stack) &&
		    vec_push(&stack->traps, { run->base + (uint64_t)handler, frame }) < 0)
			step_fail(s, -ENOMEM);
		if (op == TRAP_POP && stack->traps.n > 0 &&
		    stack->traps.items[stack->traps.n - 1].frame == frame)
			stack->traps.n--;
	}
}

/* Return: whether a function without a role of its own, or a stub, begins with the run. */
static inline bool begins_plainly(const struct blockfacts_recent *facts, const struct ptd_run *run)
{
	return (facts->flags & BLOCKFACTS_BEGINS) && run->first == 0 &&
	       (facts->role == FUNCTION_PLAIN || function_leads_on(facts->role));
}

/*
 * Most arrivals are calls, and returns to where these were made. The rules for them do not look at
 * anything but what is known here. @end is the end of the block of the run before @run, to which
 * that ran.
 *
 * Return: whether the arrival was such a one; if not, the rules decide.
 */
static inline bool arrive_plainly(struct step *s, const struct blockfacts_end *end,
				  const struct blockfacts_recent *facts, const struct ptd_run *run)
{
	struct callstack *stack = s->thread->stack;
	const struct functions *functions = &s->world->functions;
	struct call_list *list = &s->world->list;
	const uint64_t next = run[-1].base + end->offset;
	/* The compiler knows that no other pointer leads to this copy. */
	struct call_place place = s->place;

	place.from = run[-1].base + end->last_offset;
	place.to = run->first == 0 ? run->base : ptd_run_ip(run, 0);
	switch (end->last_class) {
	case PTD_INSN_CALL:
	case PTD_INSN_CALL_INDIRECT:
		if (end->is_unnamed || !begins_plainly(facts, run) || place.to == next ||
		    !callstack_call(stack, list, functions, &place, facts->code,
				    function_leads_on(facts->role) ? FRAME_STUB : FRAME_FUNCTION,
				    next))
			return false;
		step_add_search_room(s->thread);
		return true;
	case PTD_INSN_RETURN:
		return callstack_return(stack, list, functions, &place);
	case PTD_INSN_JUMP_INDIRECT:
		s->place = place;
		return begins_plainly(facts, run) && facts->role == FUNCTION_PLAIN &&
		       callstack_bind(stack, list, functions, &s->place, facts->code);
	default:
		return false;
	}
}

#define FACTS_SPECIAL (BLOCKFACTS_MIXED | BLOCKFACTS_TRAPS)

/* Return: whether the last instruction is a jump that, by blockfacts.c, does not end a
 * block. */
static bool is_after_jump(const struct step *s)
{
	const uint8_t iclass = step_last_class(s);

	return iclass == PTD_INSN_JUMP || iclass == PTD_INSN_JUMP_COND;
}

/* Take a run at which there may be something to do. Return: 0 or -ENOMEM. */
static int take_run(struct step *s, const struct ptd_run *run, const struct blockfacts *facts)
{
	struct callthread *thread = s->thread;
	uint32_t code;
	int r;

	s->run = run;
	s->insn = run->first;
	s->ip = ptd_run_ip(run, 0);
	s->code = facts->code;
	s->role = facts->role;
	s->begins = facts->flags & BLOCKFACTS_BEGINS;
	if (run->first > 0) {
		r = functions_code(&s->world->functions, s->batch, run->block, run->first, &code);
		if (r < 0)
			return r;
		step_set_code(s, code);
	}
	if (thread->code != s->code ||
	    ((facts->flags & BLOCKFACTS_START) && run->first == 0 && is_after_jump(s)))
		arrive(s);
	if (facts->flags & BLOCKFACTS_MIXED)
		take_mixed(s);
	if ((facts->flags & BLOCKFACTS_TRAPS) && s->world->list.r == 0)
		take_traps(s);
	thread->code = s->code;
	return s->world->list.r;
}

/*
 * Pass the runs from @run to before @end that have the code @code and need no look, or were looked
 * at (@taken), up to the first one behind which there is something to do. @n counts their
 * instructions.
 *
 * Return: the run behind them.
 */
static const struct ptd_run *pass_runs(const struct blockfacts_table *blocks,
				       const struct ptd_run *run, const struct ptd_run *end,
				       const struct ptd_run *taken, uint32_t code, uint64_t *n,
				       bool *ret_is_pending)
{
	uint64_t n_passed = 0;

	*ret_is_pending = false;
	for (; run < end && !*ret_is_pending; run++) {
		const struct blockfacts_recent *recent =
		    &blocks->recent[blockfacts_index(run->block)];

		if (recent->block != run->block || (recent->code != code && run != taken))
			break;
		n_passed += run->n;
		*ret_is_pending = run->first + run->n == recent->n_insns;
	}
	*n += n_passed;
	return run;
}

/* Take a run by the rules. It is passed then; or it is put into @taken, and is passed next. */
static int take_by_rules(struct step *s, const struct ptd_run **run, uint64_t *n,
			 const struct ptd_run **taken)
{
	const struct blockfacts *facts =
	    blockfacts_get(&s->world->blocks, &s->world->functions, s->batch, (*run)->block);
	struct callthread *thread = s->thread;
	int r;

	if (!facts)
		return -ENOMEM;
	r = take_run(s, *run, facts);
	if (r < 0)
		return r;
	if (!(facts->flags & FACTS_SPECIAL) && thread->code == facts->code &&
	    blockfacts_hold(&s->world->blocks, &s->world->functions)) {
		*taken = *run;
		return 0;
	}
	if ((facts->flags & BLOCKFACTS_ENDS) && (*run)->first + (*run)->n == facts->n_insns)
		thread->code = CODE_PENDING;
	*n += (*run)->n;
	++*run;
	return 0;
}

/*
 * Take runs of @batch from @at on, which then says how far, to before @last, or until there are
 * enough calls.
 *
 * Return: 0 or -ENOMEM.
 */
static int take_runs(struct callthread *thread, struct call_world *world,
		     const struct ptd_batch *batch, size_t *at, size_t last)
{
	struct step s = { .thread = thread, .world = world, .batch = batch };
	const struct ptd_run *first = batch->runs + *at, *end = batch->runs + last, *run = first;
	const struct ptd_run *taken = NULL;
	struct blockfacts_table *blocks = &world->blocks;
	uint64_t n = thread->shown.n_insns;
	int r = 0;

	while (run < end && world->list.calls.n < CALLTHREAD_CALLS && r == 0) {
		const struct blockfacts_recent *recent;
		struct blockfacts_end before = {};
		bool is_pending;

		if (!blockfacts_hold(blocks, &world->functions))
			blockfacts_forget(blocks, &world->functions);
		run = pass_runs(blocks, run, end, taken, thread->code, &n, &is_pending);
		if (is_pending) {
			thread->code = CODE_PENDING;
			before = blocks->ends[blockfacts_index(run[-1].block)];
		}
		if (run == end)
			break;
		recent = &blocks->recent[blockfacts_index(run->block)];
		if (recent->block != run->block &&
		    !blockfacts_get(blocks, &world->functions, batch, run->block)) {
			r = -ENOMEM;
			break;
		}
		if (recent->code == thread->code)
			continue;
		s.place =
		    (struct call_place){ .run = (size_t)(run - batch->runs), .t = run->t, .n = n };
		s.last = run > first ? run - 1 : &thread->last;
		if (is_pending && recent->code != CODE_NONE &&
		    arrive_plainly(&s, &before, recent, run))
			thread->code = recent->code;
		else
			r = take_by_rules(&s, &run, &n, &taken);
	}
	thread->shown.n_insns = n;
	if (run > first) {
		thread->last = run[-1];
		thread->shown.t_last = thread->last.t;
	}
	*at = (size_t)(run - batch->runs);
	return r;
}

static void take_mark(struct callthread *thread, struct call_world *world,
		      const struct ptd_mark *mark)
{
	const bool is_after_insn = thread->after == CALL_AFTER_INSN;

	switch (mark->kind) {
	case PTD_MARK_GAP:
	case PTD_MARK_OUT_OF_SCOPE:
	case PTD_MARK_STOP:
		if (thread->after != CALL_AFTER_NOTHING)
			callstack_break(thread->stack, &world->list, &world->functions,
					&(struct call_place){ .run = mark->run,
							      .t = mark->t,
							      .n = thread->shown.n_insns });
		thread->after = CALL_AFTER_NOTHING;
		break;
	case PTD_MARK_ASYNC:
		/* If nothing ran since the last mark, that one says where the thread was. */
		if (is_after_insn) {
			thread->after = CALL_AFTER_ASYNC;
			thread->async_ip = mark->ip;
		}
		break;
	case PTD_MARK_OFF:
		if (is_after_insn)
			thread->after = CALL_AFTER_OFF;
		break;
	case PTD_MARK_TSX:
		if (mark->value == PTD_TSX_ABORT && thread->after != CALL_AFTER_NOTHING)
			thread->after = CALL_AFTER_ABORT;
		break;
	default:
		return;
	}
	thread->code = CODE_PENDING;
}

void call_world_deinit(struct call_world *world)
{
	struct callstack *stack = world->stacks, *next;

	for (; stack; stack = next) {
		next = stack->next;
		callstack_deinit(stack, &world->list);
		free(stack);
	}
	vec_deinit(&world->list.calls);
	functions_deinit(&world->functions);
	blockfacts_deinit(&world->blocks);
}

int callthread_init(struct callthread *thread, struct call_world *world, struct stackpool *pool,
		    const struct ptd_slice *slice)
{
	*thread = (struct callthread){
		.shown = { .id = thread->shown.id,
			   .pid = slice->pid,
			   .tid = slice->tid,
			   .space = slice->space },
		.stack = stackpool_new_stack(world),
		.pool = pool,
		.after = CALL_AFTER_NOTHING,
		.code = CODE_PENDING,
	};
	if (!thread->stack)
		return -ENOMEM;
	thread->stack->thread = thread->shown.id;
	return 0;
}

void callthread_begin(struct callthread *thread, const struct ptd_batch *batch)
{
	if (thread->slice != batch->slice->id && thread->after == CALL_AFTER_INSN) {
		thread->is_new_slice = true;
		thread->code = CODE_PENDING;
	}
	thread->slice = batch->slice->id;
	thread->shown.cpu = batch->slice->cpu;
	thread->shown.comm = batch->slice->comm;
	if (thread->shown.n_insns == 0 && batch->n_runs > 0)
		thread->shown.t_first = batch->runs[0].t;
	if (thread->search_room < SEARCH_ROOM_PER_BATCH)
		thread->search_room = SEARCH_ROOM_PER_BATCH;
}

int callthread_take(struct callthread *thread, struct call_world *world,
		    const struct ptd_batch *batch, struct call_position *at)
{
	int r = 0;

	while (!callthread_has_taken(batch, at) && world->list.calls.n < CALLTHREAD_CALLS) {
		const struct ptd_mark *mark =
		    at->mark < batch->n_marks ? &batch->marks[at->mark] : NULL;
		const size_t end = mark ? mark->run : callthread_n(batch, at);

		/* A batch of marks alone has no array of runs. */
		if (at->run < end)
			r = at->logged ? logged_take(thread, world, at->logged, &at->run, end)
				       : take_runs(thread, world, batch, &at->run, end);
		if (r < 0)
			return r;
		if (mark && at->run == end) {
			take_mark(thread, world, mark);
			at->mark++;
		}
	}
	return world->list.r;
}

int callthread_end(struct callthread *thread, struct call_world *world)
{
	const struct call_place place = { .t = thread->shown.t_last, .n = thread->shown.n_insns };

	thread->n_at_end = thread->stack->frames.n;
	callstack_leave_to(thread->stack, &world->list, &world->functions, &place, 0,
			   PTD_CALL_BY_END);
	stackpool_end_home(thread, world);
	stackpool_end(thread->pool, world, thread->shown.id, &place);
	thread->shown.ended = true;
	return world->list.r;
}

void callthread_forget(struct callthread *thread, struct call_world *world)
{
	stackpool_drop_stack(world, thread->stack);
	thread->stack = NULL;
	thread->n_at_end = 0;
}
