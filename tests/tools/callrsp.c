/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * callrsp SNAPSHOT <LOG: compares the calls of a program that had one thread with the stack pointer
 * before each instruction, which QEMU logged in the same run (QEMU_LOG=exec,cpu,nochain and
 * QEMU_SINGLESTEP=1). A function is open as long as the stack pointer is not above its return
 * address. So each function must be left at the first instruction for which it is, and each call
 * instruction must enter one.
 *
 * A function that is unwound, and a signal's handler, may be left some instructions later: the
 * stack pointer is set before control leaves the unwinder.
 *
 * It prints what differs, and counts. The exit status is 1 if anything differs.
 */

#include <errno.h>
#include <error.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "ptd/calls.h"
#include "ptd/decode.h"
#include "tests/lib/decoding.h"
#include "util/vec.h"

#define LATE_MAX     8 /* instructions */
#define FAULTS_SHOWN 20

struct logged {
	uint64_t rip, rsp;
};

struct open {
	const struct ptd_function *function;
	uint64_t slot; /* address of its return address; UINT64_MAX: it has none */
	uint64_t
	    n_gone; /* number of the instruction at which it was left; UINT64_MAX: it is open */
};

struct truth {
	VEC(struct logged) log;
	size_t next;          /* in the log */
	VEC(uint64_t) rsp;    /* before each decoded instruction */
	VEC(uint64_t) called; /* numbers of the instructions that calls lead to */
	size_t next_called;
	VEC(struct open) open;
	uint64_t jumped; /* where the function that was left last had its return address */
	uint64_t
	    n_seen; /* instructions of which the stack pointer was compared with the open ones */
	uint64_t n_faults, n_entered, n_left, n_unwound, n_local;
};

static void die_of_memory(int r)
{
	if (r < 0)
		error(2, -r, "callrsp");
}

static void read_log(struct truth *truth)
{
	_cleanup_(freep) char *line = NULL;
	size_t capacity = 0;
	uint64_t rsp = 0;

	while (getline(&line, &capacity, stdin) > 0) {
		const char *at = line[0] == 'R' ? strstr(line, "RSP=") : NULL;

		if (at)
			rsp = strtoull(at + 4, NULL, 16);
		if (strncmp(line, "RIP=", 4) == 0)
			die_of_memory(vec_push(&truth->log, { strtoull(line + 4, NULL, 16), rsp }));
	}
}

static void fault(struct truth *truth, uint64_t n, const struct ptd_function *function,
		  const char *what)
{
	if (truth->n_faults++ < FAULTS_SHOWN)
		printf("instruction %" PRIu64 ", %s: %s\n", n, function ? function->name : "-",
		       what);
}

/* Find the instruction in the log. One that repeats is there several times. */
static void align(struct truth *truth, uint64_t ip)
{
	while (truth->next < truth->log.n && truth->log.items[truth->next].rip != ip &&
	       truth->next > 0 &&
	       truth->log.items[truth->next].rip == truth->log.items[truth->next - 1].rip)
		truth->next++;
	if (truth->next == truth->log.n || truth->log.items[truth->next].rip != ip)
		error(1, 0, "instruction %zu is at %" PRIx64 ", in the log at %" PRIx64,
		      truth->rsp.n, ip,
		      truth->next < truth->log.n ? truth->log.items[truth->next].rip : 0);
	die_of_memory(vec_push(&truth->rsp, truth->log.items[truth->next++].rsp));
}

static void take_runs(struct truth *truth, const struct ptd_batch *batch)
{
	for (size_t i = 0; i < batch->n_runs; i++) {
		const struct ptd_run *run = &batch->runs[i];
		const struct ptd_insn *last = &run->block->insns[run->first + run->n - 1];

		for (size_t k = 0; k < run->n; k++)
			align(truth, ptd_run_ip(run, k));
		if (last->iclass == PTD_INSN_CALL_INDIRECT ||
		    (last->iclass == PTD_INSN_CALL &&
		     run->block->target != last->offset + last->size))
			die_of_memory(vec_push(&truth->called, truth->rsp.n));
	}
}

/* Which functions has the stack pointer left, up to instruction @n? */
static void see(struct truth *truth, uint64_t n)
{
	for (; truth->n_seen <= n && truth->n_seen < truth->rsp.n; truth->n_seen++)
		for (size_t i = truth->open.n; i-- > 0;) {
			struct open *o = &truth->open.items[i];

			if (o->n_gone != UINT64_MAX)
				continue;
			if (truth->rsp.items[truth->n_seen] <= o->slot)
				break;
			o->n_gone = truth->n_seen;
		}
}

static void enter(struct truth *truth, const struct ptd_call *call)
{
	const uint64_t n = call->n_insns;
	struct open o = { call->function, UINT64_MAX, UINT64_MAX };
	size_t i = truth->open.n;

	see(truth, n);
	while (i > 0 && n > LATE_MAX && truth->open.items[i - 1].n_gone < n - LATE_MAX)
		fault(truth, n, truth->open.items[--i].function, "is open for too long");
	/* Code in assembly may jump into another function with something on its stack. */
	if (call->how == PTD_CALL_BY_TAIL)
		o.slot = truth->jumped;
	else if (call->how != PTD_CALL_BY_START && n < truth->rsp.n)
		o.slot = truth->rsp.items[n];
	die_of_memory(vec_push(&truth->open, o));
	truth->n_entered++;

	/* Calls within a function, and those that only find out an address, enter none. */
	while (truth->next_called < truth->called.n &&
	       truth->called.items[truth->next_called] < n) {
		truth->next_called++;
		truth->n_local++;
	}
	if (truth->next_called < truth->called.n && truth->called.items[truth->next_called] == n)
		truth->next_called++;
	else if (call->how == PTD_CALL_BY_CALL)
		fault(truth, n, call->function, "is entered without a call");
}

static void leave(struct truth *truth, const struct ptd_call *call)
{
	const uint64_t n = call->n_insns;
	struct open o;

	if (truth->open.n == 0) {
		fault(truth, n, call->function, "is not open");
		return;
	}
	if (call->how != PTD_CALL_BY_TAIL)
		see(truth, n);
	o = truth->open.items[--truth->open.n];
	truth->jumped = o.slot;
	truth->n_left++;
	truth->n_unwound += call->how == PTD_CALL_BY_UNWINDING;
	if (o.function != call->function)
		fault(truth, n, call->function, "another function is open");
	else if (call->how == PTD_CALL_BY_RETURN && o.n_gone != n)
		fault(truth, n, call->function, "is left at another instruction");
	else if ((call->how == PTD_CALL_BY_UNWINDING || call->how == PTD_CALL_BY_SIGNAL) &&
		 (o.n_gone > n || n - o.n_gone > LATE_MAX))
		fault(truth, n, call->function, "is left much later");
}

static void take_calls(struct truth *truth, const struct ptd_call_batch *batch)
{
	for (size_t i = 0; i < batch->n_calls; i++) {
		const struct ptd_call *call = &batch->calls[i];

		if (call->kind == PTD_CALL_ENTER)
			enter(truth, call);
		else if (call->kind == PTD_CALL_LEAVE && call->how != PTD_CALL_BY_END)
			leave(truth, call);
	}
}

int main(int argc, char **argv)
{
	struct truth truth = {};
	const struct ptd_call_batch *found;
	const struct ptd_batch *batch;
	struct ptd_decoder *decoder;
	struct ptd_calls *calls;

	if (argc != 2)
		error(2, 0, "usage: callrsp SNAPSHOT <LOG");
	read_log(&truth);
	decoder = decoding_new(
	    &(struct ptd_options){ .size = sizeof(struct ptd_options), .input = argv[1] });
	die_of_memory(ptd_calls_new(NULL, &calls));
	while ((batch = decoding_next(decoder, argv[1]))) {
		take_runs(&truth, batch);
		die_of_memory(ptd_calls_batch(calls, batch));
		while (ptd_calls_next(calls, &found) == 0)
			take_calls(&truth, found);
	}
	printf("%zu instructions, %zu calls, %" PRIu64 " of them within functions, %" PRIu64
	       " entered, %" PRIu64 " left, %" PRIu64 " unwound: %" PRIu64 " faults\n",
	       truth.rsp.n, truth.called.n, truth.n_local, truth.n_entered, truth.n_left,
	       truth.n_unwound, truth.n_faults);
	ptd_calls_free(calls);
	ptd_decoder_free(decoder);
	vec_deinit(&truth.log);
	vec_deinit(&truth.rsp);
	vec_deinit(&truth.called);
	vec_deinit(&truth.open);
	return truth.n_faults > 0 || truth.rsp.n == 0;
}
