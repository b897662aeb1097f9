/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * callrsp [-s] SNAPSHOT <LOG: compares the calls of a program with the stack pointer before each
 * instruction, which QEMU logged in the same run (QEMU_LOG=exec,cpu,nochain and QEMU_SINGLESTEP=1).
 * The base address of FS says which thread a line of the log belongs to.
 *
 * A function is open as long as the stack pointer is not above its return address. So each function
 * must be left at the first instruction for which it is, and each call instruction must enter one.
 * A function that is unwound, and a signal's handler, may be left some instructions later: the
 * stack pointer is set before control leaves the unwinder.
 *
 * With -s the threads change between stacks, and the stack pointer says nothing about functions on
 * another one. Instead, each return instruction must take its address from where the call of the
 * function that it leaves has put it. A function that is unwound, unless its stack is given up for
 * another one, must have the stack pointer just above that place. And a stack on which a thread
 * goes on must be at the address that it had, unless Go has copied it or the layer says that it
 * had, or made, a wrong choice. What is ambiguous may be of another stack.
 *
 * Functions are inferred only if they were open when their thread began, or are ambiguous.
 *
 * It prints what differs, and counts. The exit status is 1 if anything differs.
 */

#include <errno.h>
#include <error.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "ptd/calls.h"
#include "ptd/decode.h"
#include "tests/lib/decoding.h"
#include "util/vec.h"

#define LATE_MAX     8 /* instructions */
#define FAULTS_SHOWN 20
#define SLOT_SIZE    8                    /* bytes of a return address */
#define UNWOUND_MAX  (UINT64_C(64) << 10) /* bytes of stack that are unwound at a time */

/* Go's function that makes the stack of a goroutine larger. */
static const char copies_stack[] = "runtime.copystack";

struct logged_insn {
	uint64_t rip, rsp;
};

/* What QEMU logged of one thread. */
struct logged {
	uint64_t fs;
	bool is_taken; /* it is known whose it is */
	VEC(struct logged_insn) insns;
};

struct open {
	const struct ptd_function *function;
	uint64_t slot;   /* address of its return address; UINT64_MAX: it has none */
	uint64_t n_gone; /* number of the instruction at which it was left; UINT64_MAX: not yet */
};

struct stack {
	VEC(struct open) open;
	uint64_t shift; /* to what its slots are, since it was taken for another */
	bool is_lost;   /* it turned out to be another one: where it is shows when it goes on */
};

struct thread {
	uint32_t tid;
	VEC(uint64_t) ips;      /* of each decoded instruction */
	VEC(uint64_t) rsp;      /* before it */
	VEC(uint64_t) called;   /* numbers of the instructions that calls lead to */
	VEC(uint64_t) returned; /* likewise, returns */
	size_t next_called, next_returned;
	uint64_t
	    n_seen; /* instructions of which the stack pointer was compared with the open ones */
	uint32_t stack; /* that it is on; + 1 */
	uint32_t first_stack;
	uint64_t jumped;    /* where the function that was left last had its return address */
	uint64_t n_handled; /* number of the instruction at which a handler was left last */
	bool has_copied;    /* a stack, to make it larger, since it last changed stacks */
};

struct truth {
	bool changes_stacks;
	VEC(struct logged) log;
	VEC(struct thread) threads;
	VEC(struct stack) stacks;
	uint64_t n_faults, n_entered, n_left, n_unwound, n_inferred, n_ambiguous, n_handlers;
	uint64_t n_local;  /* calls that entered nothing */
	uint64_t n_silent; /* returns that left nothing */
	uint64_t n_switches, n_copied, n_wrong;
};

static void die_of_memory(int r)
{
	if (r < 0)
		error(2, -r, "callrsp");
}

static void fault(struct truth *truth, const struct thread *thread, uint64_t n,
		  const struct ptd_function *function, const char *what)
{
	if (truth->n_faults++ < FAULTS_SHOWN)
		printf("thread %" PRIu32 ", instruction %" PRIu64 ", %s: %s\n", thread->tid, n,
		       function ? function->name : "-", what);
}

/* --- the log ---------------------------------------------------------------------------------- */

/* The first thread has no FS before it sets it. */
static struct logged *find_log(struct truth *truth, uint64_t fs)
{
	struct logged *first = truth->log.items;

	for (size_t i = 0; i < truth->log.n; i++)
		if (truth->log.items[i].fs == fs)
			return &truth->log.items[i];
	if (truth->log.n == 1 && first->fs == 0) {
		first->fs = fs;
		return first;
	}
	die_of_memory(vec_push(&truth->log, { .fs = fs }));
	return &truth->log.items[truth->log.n - 1];
}

static void read_log(struct truth *truth)
{
	_cleanup_(freep) char *line = NULL;
	struct logged *log = NULL;
	size_t capacity = 0;
	uint64_t rsp = 0, rip = 0;

	while (getline(&line, &capacity, stdin) > 0) {
		const char *at = line[0] == 'R' ? strstr(line, "RSP=") : NULL;

		if (at)
			rsp = strtoull(at + 4, NULL, 16);
		if (strncmp(line, "RIP=", 4) == 0)
			rip = strtoull(line + 4, NULL, 16);
		if (strncmp(line, "FS =", 4) == 0 && strlen(line) > 9) {
			const uint64_t fs = strtoull(line + 9, NULL, 16);

			if (!log || log->fs != fs)
				log = find_log(truth, fs);
			die_of_memory(vec_push(&log->insns, { rip, rsp }));
		}
	}
}

/* --- what was executed ------------------------------------------------------------------------ */

static struct thread *find_thread(struct truth *truth, uint32_t tid)
{
	for (size_t i = 0; i < truth->threads.n; i++)
		if (truth->threads.items[i].tid == tid)
			return &truth->threads.items[i];
	die_of_memory(vec_push(&truth->threads, { .tid = tid }));
	return &truth->threads.items[truth->threads.n - 1];
}

static void take_runs(struct truth *truth, const struct ptd_batch *batch)
{
	struct thread *thread = find_thread(truth, batch->slice->tid);

	for (size_t i = 0; i < batch->n_runs; i++) {
		const struct ptd_run *run = &batch->runs[i];
		const struct ptd_insn *last = &run->block->insns[run->first + run->n - 1];

		for (size_t k = 0; k < run->n; k++)
			die_of_memory(vec_push(&thread->ips, ptd_run_ip(run, k)));
		if (last->iclass == PTD_INSN_CALL_INDIRECT ||
		    (last->iclass == PTD_INSN_CALL &&
		     run->block->target != last->offset + last->size))
			die_of_memory(vec_push(&thread->called, thread->ips.n));
		if (last->iclass == PTD_INSN_RETURN)
			die_of_memory(vec_push(&thread->returned, thread->ips.n));
	}
}

/* Return: the place at or behind @at where not the instruction before it is repeated, but @ip. */
static size_t skip_repeated(const struct logged *log, size_t at, uint64_t ip)
{
	while (at > 0 && at < log->insns.n && log->insns.items[at].rip != ip &&
	       log->insns.items[at].rip == log->insns.items[at - 1].rip)
		at++;
	return at;
}

/*
 * Find the thread's instructions in the log. One that repeats is there several times; and one that
 * a signal interrupted is there before it, too.
 *
 * Return: how many were found.
 */
static size_t align(struct thread *thread, const struct logged *log)
{
	size_t at = 0;

	thread->rsp.n = 0;
	for (size_t i = 0; i < thread->ips.n; i++, at++) {
		const uint64_t ip = thread->ips.items[i];

		at = skip_repeated(log, at, ip);
		if (at + 1 < log->insns.n && log->insns.items[at].rip != ip)
			at = skip_repeated(log, at + 1, ip);
		if (at >= log->insns.n || log->insns.items[at].rip != ip)
			return i;
		die_of_memory(vec_push(&thread->rsp, log->insns.items[at].rsp));
	}
	return thread->ips.n;
}

/* Find out which log is the thread's. */
static void find_rsp(struct truth *truth, struct thread *thread)
{
	size_t n_most = 0;

	for (size_t i = 0; i < truth->log.n; i++) {
		size_t n;

		if (truth->log.items[i].is_taken)
			continue;
		n = align(thread, &truth->log.items[i]);
		if (n == thread->ips.n) {
			truth->log.items[i].is_taken = true;
			return;
		}
		n_most = n > n_most ? n : n_most;
	}
	error(1, 0, "thread %" PRIu32 ": instruction %zu of %zu, at %" PRIx64 ", is in no log",
	      thread->tid, n_most, thread->ips.n, thread->ips.items[n_most]);
}

/* --- calls ------------------------------------------------------------------------------------ */

static struct stack *stack_at(struct truth *truth, uint32_t id)
{
	while (truth->stacks.n <= id)
		die_of_memory(vec_push(&truth->stacks, {}));
	return &truth->stacks.items[id];
}

/* Which functions has the stack pointer left, up to instruction @n? */
static void see(struct thread *thread, struct stack *stack, uint64_t n)
{
	for (; thread->n_seen <= n && thread->n_seen < thread->rsp.n; thread->n_seen++)
		for (size_t i = stack->open.n; i-- > 0;) {
			struct open *o = &stack->open.items[i];

			if (o->n_gone != UINT64_MAX)
				continue;
			if (thread->rsp.items[thread->n_seen] <= o->slot)
				break;
			o->n_gone = thread->n_seen;
		}
}

/* Which calls and returns led to what the layer does not call one? */
static void pass(struct truth *truth, struct thread *thread, uint64_t n)
{
	for (; thread->next_called < thread->called.n &&
	       thread->called.items[thread->next_called] < n;
	     thread->next_called++)
		truth->n_local++;
	for (; thread->next_returned < thread->returned.n &&
	       thread->returned.items[thread->next_returned] < n;
	     thread->next_returned++)
		truth->n_silent++;
}

/* Return: whether instruction @n is one that a return leads to, which is now accounted for. */
static bool take_return(struct thread *thread, uint64_t n)
{
	if (thread->next_returned < thread->returned.n &&
	    thread->returned.items[thread->next_returned] == n)
		thread->next_returned++;
	return thread->next_returned > 0 && thread->returned.items[thread->next_returned - 1] == n;
}

static uint64_t slot_of(const struct thread *thread, const struct ptd_call *call)
{
	const uint64_t n = call->n_insns;

	switch (call->how) {
	case PTD_CALL_BY_TAIL:
		/* Code in assembly may jump into another function with something on its stack. */
		return thread->jumped;
	case PTD_CALL_BY_START:
		if (call->to != call->function->address)
			return UINT64_MAX;
		break;
	case PTD_CALL_BY_INFERENCE:
	case PTD_CALL_BY_RESUMPTION:
		return UINT64_MAX;
	default:
		break;
	}
	return n < thread->rsp.n ? thread->rsp.items[n] : UINT64_MAX;
}

/* Only what was open when the thread began is inferred, or what waited on a stack that went on
 * before it was seen to wait: that says that it is ambiguous. */
static void check_inferred(struct truth *truth, const struct thread *thread,
			   const struct ptd_call *call)
{
	if (call->how != PTD_CALL_BY_INFERENCE && call->how != PTD_CALL_BY_RESUMPTION)
		return;
	truth->n_inferred++;
	if (call->stack != thread->first_stack && !call->ambiguous)
		fault(truth, thread, call->n_insns, call->function, "was not seen to be entered");
}

static void enter(struct truth *truth, struct thread *thread, const struct ptd_call *call)
{
	struct stack *stack = stack_at(truth, call->stack);
	const struct open o = { call->function, slot_of(thread, call), UINT64_MAX };
	const uint64_t n = call->n_insns;
	size_t i = stack->open.n;

	if (!truth->changes_stacks) {
		see(thread, stack, n);
		while (i > 0 && n > LATE_MAX && stack->open.items[i - 1].n_gone < n - LATE_MAX)
			fault(truth, thread, n, stack->open.items[--i].function,
			      "is open for too long");
	}
	die_of_memory(vec_push(&stack->open, o));
	thread->has_copied = thread->has_copied || strcmp(o.function->name, copies_stack) == 0;
	truth->n_entered++;
	check_inferred(truth, thread, call);

	/* Calls within a function, and those that only find out an address, enter none. */
	pass(truth, thread, n);
	(void)take_return(thread, n);
	if (thread->next_called < thread->called.n &&
	    thread->called.items[thread->next_called] == n)
		thread->next_called++;
	else if (call->how == PTD_CALL_BY_CALL && thread->n_handled != n)
		fault(truth, thread, n, call->function, "is entered without a call");
}

/* A function is unwound: without a change of stacks, the stack pointer has passed it by. */
static void check_unwound(struct truth *truth, const struct thread *thread,
			  const struct ptd_call *call, const struct open *o)
{
	const uint64_t n = call->n_insns;

	if (o->slot == UINT64_MAX || n >= thread->rsp.n || call->ambiguous)
		return;
	if (thread->rsp.items[n] <= o->slot || thread->rsp.items[n] - o->slot > UNWOUND_MAX)
		fault(truth, thread, n, call->function, "is unwound, but still open");
}

/* Return: whether the thread changes stacks by what is left by @call and the ones that follow. */
static bool is_before_switch(const struct ptd_call *call, const struct ptd_call *end)
{
	const uint64_t n = call->n_insns;

	while (call < end && call->kind == PTD_CALL_LEAVE && call->n_insns == n)
		call++;
	/* At the end of what is given at a time it is not known. */
	return call == end || (call->kind == PTD_CALL_SWITCH && call->n_insns == n);
}

/* A function is left where the stack pointer shows it. */
static void check_leave(struct truth *truth, struct thread *thread, const struct ptd_call *call,
			const struct open *o)
{
	const uint64_t n = call->n_insns;
	const bool by_return = call->how == PTD_CALL_BY_RETURN;

	if (o->function != call->function)
		fault(truth, thread, n, call->function, "another function is open");
	else if (!truth->changes_stacks && by_return && o->n_gone != n)
		fault(truth, thread, n, call->function, "is left at another instruction");
	else if (!truth->changes_stacks &&
		 (call->how == PTD_CALL_BY_UNWINDING || call->how == PTD_CALL_BY_SIGNAL) &&
		 (o->n_gone > n || n - o->n_gone > LATE_MAX))
		fault(truth, thread, n, call->function, "is left much later");
	else if (truth->changes_stacks && by_return && !call->ambiguous && o->slot != UINT64_MAX &&
		 (take_return(thread, n) ? thread->rsp.items[n - 1] != o->slot
					 : thread->rsp.items[n] != o->slot + SLOT_SIZE))
		fault(truth, thread, n, call->function, "another function returns");
}

static void leave(struct truth *truth, struct thread *thread, const struct ptd_call *call,
		  const struct ptd_call *end)
{
	struct stack *stack = stack_at(truth, call->stack);
	const uint64_t n = call->n_insns;
	struct open o;

	if (stack->open.n == 0) {
		fault(truth, thread, n, call->function, "is not open");
		return;
	}
	if (!truth->changes_stacks && call->how != PTD_CALL_BY_TAIL)
		see(thread, stack, n);
	o = stack->open.items[--stack->open.n];
	if (call->how == PTD_CALL_BY_END)
		return;
	thread->jumped = o.slot;
	truth->n_left++;
	truth->n_unwound += call->how == PTD_CALL_BY_UNWINDING;
	if (call->how == PTD_CALL_BY_SIGNAL) {
		truth->n_handlers++;
		thread->n_handled = n;
	}
	pass(truth, thread, n);
	(void)take_return(thread, n);
	check_leave(truth, thread, call, &o);
	if (truth->changes_stacks && call->how == PTD_CALL_BY_UNWINDING &&
	    !is_before_switch(call, end))
		check_unwound(truth, thread, call, &o);
}

static void shift(struct stack *stack, uint64_t by)
{
	for (size_t i = 0; i < stack->open.n; i++)
		if (stack->open.items[i].slot != UINT64_MAX)
			stack->open.items[i].slot += by;
}

/* Return: where the innermost function of @stack has its return address; UINT64_MAX: none. */
static uint64_t top_slot(const struct stack *stack)
{
	return stack->open.n > 0 ? stack->open.items[stack->open.n - 1].slot : UINT64_MAX;
}

/*
 * The layer had taken the stack @wrong for @right, whose innermost functions belong to @wrong. Both
 * are known to be equal but for where they are: the thread is on @right, which returns now, and
 * what was moved is as far from the functions below it as it was.
 */
static void move(struct truth *truth, const struct thread *thread, struct stack *right,
		 struct stack *wrong, const struct ptd_call *call)
{
	const size_t n = call->n_moved;
	uint64_t by = 0, slot;

	if (n > right->open.n)
		error(1, 0, "more is moved than is open");
	shift(wrong, -wrong->shift);
	right->open.n -= n;
	if (top_slot(wrong) != UINT64_MAX && top_slot(right) != UINT64_MAX)
		by = top_slot(wrong) - top_slot(right);
	for (size_t i = right->open.n; i < right->open.n + n; i++) {
		struct open open = right->open.items[i];

		open.slot += open.slot != UINT64_MAX ? by : 0;
		die_of_memory(vec_push(&wrong->open, open));
	}
	wrong->shift = right->shift = 0;
	wrong->is_lost = true;
	slot = top_slot(right);
	if (slot != UINT64_MAX && call->n_insns > 0 && call->n_insns < thread->rsp.n)
		shift(right, thread->rsp.items[call->n_insns - 1] - slot);
	truth->n_wrong++;
}

/* The stack goes on behind its innermost function: where? */
static void go_on(struct truth *truth, const struct thread *thread, struct stack *stack,
		  const struct ptd_call *call)
{
	const uint64_t slot = top_slot(stack);
	const uint64_t by = thread->rsp.items[call->n_insns] - (slot + SLOT_SIZE);
	const bool is_lost = stack->is_lost;

	stack->is_lost = false;
	if (slot == UINT64_MAX || by == 0)
		return;
	if (thread->has_copied)
		truth->n_copied++;
	else if (call->ambiguous)
		stack->shift += by;
	else if (!is_lost)
		fault(truth, thread, call->n_insns, stack->open.items[stack->open.n - 1].function,
		      "another stack goes on");
	shift(stack, by);
}

/* @next is the call behind it; NULL: there is none. */
static void change(struct truth *truth, struct thread *thread, const struct ptd_call *call,
		   const struct ptd_call *next)
{
	struct stack *stack;

	truth->n_switches++;
	(void)stack_at(truth, call->stack);
	if (thread->stack > 0)
		(void)stack_at(truth, thread->stack - 1);
	stack = stack_at(truth, call->stack);
	if (stack->open.n == 0) {
		stack->shift = 0;
		stack->is_lost = false;
	}
	if (call->n_moved > 0 && thread->stack > 0)
		move(truth, thread, stack, stack_at(truth, thread->stack - 1), call);
	else if (stack->open.n > 0 && next && next->kind == PTD_CALL_LEAVE &&
		 next->how == PTD_CALL_BY_RETURN && next->n_insns < thread->rsp.n)
		go_on(truth, thread, stack, call);
	thread->has_copied = false;
	thread->stack = call->stack + 1;
}

static void take_calls(struct truth *truth, const struct ptd_call_batch *batch)
{
	struct thread *thread = find_thread(truth, batch->thread->tid);

	for (size_t i = 0; i < batch->n_calls; i++) {
		const struct ptd_call *call = &batch->calls[i];

		if (thread->stack == 0)
			thread->first_stack = call->stack;
		truth->n_ambiguous += call->ambiguous && call->kind != PTD_CALL_SWITCH;
		if (call->kind == PTD_CALL_ENTER)
			enter(truth, thread, call);
		else if (call->kind == PTD_CALL_LEAVE)
			leave(truth, thread, call, batch->calls + batch->n_calls);
		else
			change(truth, thread, call, i + 1 < batch->n_calls ? call + 1 : NULL);
		thread->stack = call->stack + 1;
	}
}

/* --- both ------------------------------------------------------------------------------------- */

/* Decode the input, and give it to the call layer if there is one. */
static void decode(struct truth *truth, const char *input, struct ptd_calls *calls)
{
	struct ptd_decoder *decoder = decoding_new(
	    &(struct ptd_options){ .size = sizeof(struct ptd_options), .input = input });
	const struct ptd_call_batch *found;
	const struct ptd_batch *batch;

	while ((batch = decoding_next(decoder, input))) {
		if (!calls) {
			take_runs(truth, batch);
			continue;
		}
		die_of_memory(ptd_calls_batch(calls, batch));
		while (ptd_calls_next(calls, &found) == 0)
			take_calls(truth, found);
	}
	ptd_decoder_free(decoder);
}

/* Return: whether there was something to compare, and nothing differs. */
static bool report(struct truth *truth)
{
	size_t n_insns = 0, n_called = 0;

	for (size_t i = 0; i < truth->threads.n; i++) {
		struct thread *thread = &truth->threads.items[i];

		pass(truth, thread, UINT64_MAX);
		n_insns += thread->ips.n;
		n_called += thread->called.n;
	}
	/* A handler returns before it is left. */
	if (truth->changes_stacks && truth->n_silent > truth->n_local + truth->n_handlers) {
		printf("%" PRIu64 " returns left nothing\n", truth->n_silent);
		truth->n_faults++;
	}
	printf("%zu instructions of %zu threads, %zu calls, %" PRIu64 " of them within functions, "
	       "%" PRIu64 " entered, %" PRIu64 " left, %" PRIu64 " unwound, %" PRIu64
	       " inferred, %" PRIu64 " ambiguous; %" PRIu64 " switches, %" PRIu64
	       " stacks copied, %" PRIu64 " wrong at first: %" PRIu64 " faults\n",
	       n_insns, truth->threads.n, n_called, truth->n_local, truth->n_entered, truth->n_left,
	       truth->n_unwound, truth->n_inferred, truth->n_ambiguous, truth->n_switches,
	       truth->n_copied, truth->n_wrong, truth->n_faults);
	return n_insns > 0 && truth->n_faults == 0;
}

static void forget(struct truth *truth)
{
	for (size_t i = 0; i < truth->threads.n; i++) {
		vec_deinit(&truth->threads.items[i].ips);
		vec_deinit(&truth->threads.items[i].rsp);
		vec_deinit(&truth->threads.items[i].called);
		vec_deinit(&truth->threads.items[i].returned);
	}
	for (size_t i = 0; i < truth->stacks.n; i++)
		vec_deinit(&truth->stacks.items[i].open);
	for (size_t i = 0; i < truth->log.n; i++)
		vec_deinit(&truth->log.items[i].insns);
	vec_deinit(&truth->threads);
	vec_deinit(&truth->stacks);
	vec_deinit(&truth->log);
}

int main(int argc, char **argv)
{
	struct truth truth = {};
	struct ptd_calls *calls;
	bool same;
	int c;

	while ((c = getopt(argc, argv, "s")) != -1)
		truth.changes_stacks = c == 's';
	if (argc - optind != 1)
		error(2, 0, "usage: callrsp [-s] SNAPSHOT <LOG");
	read_log(&truth);
	decode(&truth, argv[optind], NULL);
	for (size_t i = 0; i < truth.threads.n; i++)
		find_rsp(&truth, &truth.threads.items[i]);
	die_of_memory(ptd_calls_new(NULL, &calls));
	decode(&truth, argv[optind], calls);
	ptd_calls_free(calls);
	same = report(&truth);
	forget(&truth);
	return same ? 0 : 1;
}
