/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "tests/lib/callcheck.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define FAULTS_SHOWN 20

void callcheck_deinit(struct callcheck *check)
{
	for (size_t i = 0; i < check->stacks.n; i++)
		vec_deinit(&check->stacks.items[i].frames);
	vec_deinit(&check->stacks);
	vec_deinit(&check->on);
	vec_deinit(&check->executed);
}

static void fault(struct callcheck *check, const struct ptd_call *call, const char *what)
{
	if (check->n_faults++ < FAULTS_SHOWN)
		fprintf(check->faults, "call %" PRIu64 " (kind %u, how %s, %s, depth %d): %s\n",
			check->n_calls, call->kind, ptd_call_how_name((enum ptd_call_how)call->how),
			call->function ? call->function->name : "-", call->depth, what);
}

/* Make room for the stack and the thread. */
static int make_room(struct callcheck *check, uint32_t stack, uint32_t thread)
{
	if (stack >= check->stacks.n) {
		if (vec_reserve(&check->stacks, stack + (size_t)1 - check->stacks.n) < 0)
			return -ENOMEM;
		while (check->stacks.n <= stack)
			check->stacks.items[check->stacks.n++] = (struct callcheck_stack){};
	}
	while (thread >= check->on.n)
		if (vec_push(&check->on, 0) < 0 || vec_push(&check->executed, 0) < 0)
			return -ENOMEM;
	return 0;
}

static int check_enter(struct callcheck *check, struct callcheck_stack *stack,
		       const struct ptd_call *call)
{
	const size_t n = stack->frames.n;
	const bool is_late =
	    call->how == PTD_CALL_BY_INFERENCE || call->how == PTD_CALL_BY_RESUMPTION;

	if (is_late && n > 0)
		fault(check, call, "what was open before the rest is found late");
	if (is_late && call->depth >= 0)
		fault(check, call, "what was open before the rest is not deep enough");
	if (n > 0 && call->depth != stack->frames.items[n - 1].depth + 1)
		fault(check, call, "it is not one deeper than what called it");
	return vec_push(&stack->frames, { .function = call->function, .depth = call->depth });
}

static void check_leave(struct callcheck *check, struct callcheck_stack *stack,
			const struct ptd_call *call)
{
	const struct callcheck_frame *top;

	if (stack->frames.n == 0) {
		fault(check, call, "nothing is open");
		return;
	}
	top = &stack->frames.items[--stack->frames.n];
	if (top->function != call->function || top->depth != call->depth)
		fault(check, call, "another function is open");
	if (call->t_self > call->t_total || call->n_insns_self > call->n_insns_total)
		fault(check, call, "more in itself than in all");
	/* A stack may have been another thread's. */
	if (call->n_insns_total > check->n_insns)
		fault(check, call, "more instructions than were executed");
}

/* The innermost functions of the stack that the thread comes to go to the one that it was on. */
static int check_move(struct callcheck *check, struct callcheck_stack *from,
		      struct callcheck_stack *to, const struct ptd_call *call)
{
	const size_t n = call->n_moved;

	if (n > to->frames.n) {
		fault(check, call, "more is moved than is open");
		return 0;
	}
	if (vec_reserve(&from->frames, n) < 0)
		return -ENOMEM;
	if (n > 0)
		memcpy(from->frames.items + from->frames.n, to->frames.items + to->frames.n - n,
		       n * sizeof(*to->frames.items));
	for (size_t i = from->frames.n; i < from->frames.n + n; i++)
		if (i > 0)
			from->frames.items[i].depth = from->frames.items[i - 1].depth + 1;
	from->frames.n += n;
	to->frames.n -= n;
	return 0;
}

static int check_call(struct callcheck *check, const struct ptd_call_batch *batch,
		      const struct ptd_call *call)
{
	struct callcheck_stack *stack;
	uint64_t *executed;
	uint32_t *on;
	int r;

	r = make_room(check, call->stack, batch->thread->id);
	if (r < 0)
		return r;
	executed = &check->executed.items[batch->thread->id];
	if (call->n_insns > *executed) {
		check->n_insns += call->n_insns - *executed;
		*executed = call->n_insns;
	}
	stack = &check->stacks.items[call->stack];
	on = &check->on.items[batch->thread->id];
	if (call->run > (batch->batch ? batch->batch->n_runs + check->n_logged : 0))
		fault(check, call, "it is in no run of the batch");
	if (call->kind == PTD_CALL_ENTER)
		r = check_enter(check, stack, call);
	else if (call->kind == PTD_CALL_LEAVE)
		check_leave(check, stack, call);
	else if (*on > 0)
		r = check_move(check, &check->stacks.items[*on - 1], stack, call);
	if (call->n_moved > 0 && *on != call->moved_to + 1)
		fault(check, call, "functions move to another stack than the thread was on");
	*on = call->stack + 1;
	check->n_calls++;
	return r;
}

int callcheck_calls(struct callcheck *check, const struct ptd_call_batch *batch)
{
	int r = 0;

	for (size_t i = 0; i < batch->n_calls && r == 0; i++)
		r = check_call(check, batch, &batch->calls[i]);
	return r;
}

void callcheck_end(struct callcheck *check)
{
	for (size_t i = 0; i < check->stacks.n; i++) {
		if (check->stacks.items[i].frames.n == 0)
			continue;
		check->n_faults++;
		fprintf(check->faults, "stack %zu: %zu functions were not left\n", i,
			check->stacks.items[i].frames.n);
	}
}
