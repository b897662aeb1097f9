/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/sink/callsieve.h"

#include <errno.h>

void callsieve_deinit(struct callsieve *sieve)
{
	for (size_t i = 0; i < sieve->stacks.n; i++)
		vec_deinit(&sieve->stacks.items[i].frames);
	vec_deinit(&sieve->stacks);
	vec_deinit(&sieve->on);
	vec_deinit(&sieve->given);
	*sieve = (struct callsieve){};
}

static struct callsieve_stack *stack_of(struct callsieve *sieve, uint32_t number)
{
	return vec_at(&sieve->stacks, number, (struct callsieve_stack){});
}

/* Give on what was held back of the stack, before @now. */
static int give_held(struct callsieve *sieve, struct callsieve_stack *stack,
		     const struct ptd_call *now)
{
	int r = 0;

	for (; stack->n_done < stack->frames.n && r == 0; stack->n_done++) {
		struct callsieve_frame *frame = &stack->frames.items[stack->n_done];

		if (frame->is_given || frame->enter.depth > sieve->max_depth)
			continue;
		frame->is_given = true;
		frame->enter.run = now->run;
		r = vec_push(&sieve->given, frame->enter);
	}
	return r;
}

static int leave(struct callsieve *sieve, struct callsieve_stack *stack,
		 const struct ptd_call *call)
{
	struct callsieve_frame *frame;
	struct ptd_call left = *call;
	int r = 0;

	if (call->t_total >= sieve->min_duration)
		r = give_held(sieve, stack, call);
	if (r < 0 || stack->frames.n == 0)
		return r;
	frame = &stack->frames.items[--stack->frames.n];
	if (stack->n_done > stack->frames.n)
		stack->n_done = stack->frames.n;
	if (frame->is_given) {
		left.t_self += frame->t_inner;
		left.n_insns_self += frame->insns_inner;
		return vec_push(&sieve->given, left);
	}
	sieve->n_left_out++;
	if (stack->frames.n > 0) {
		frame[-1].t_inner += call->t_total;
		frame[-1].insns_inner += call->n_insns_total;
	}
	return 0;
}

/* The new stack's innermost functions belong to the other one from now on. */
static int move(struct callsieve *sieve, const struct ptd_call *call)
{
	struct callsieve_stack *to = stack_of(sieve, call->moved_to), *from;
	size_t first;
	int r = 0;

	if (!to)
		return -ENOMEM;
	/* The thread is on it, so that it is there, and no pointer changes. */
	from = stack_of(sieve, call->stack);
	first = from->frames.n - (call->n_moved < from->frames.n ? call->n_moved : from->frames.n);
	for (size_t i = first; i < from->frames.n && r == 0; i++)
		r = vec_push(&to->frames, from->frames.items[i]);
	from->frames.n = first;
	if (from->n_done > first)
		from->n_done = first;
	return r;
}

static int take(struct callsieve *sieve, uint32_t *on, const struct ptd_call *call)
{
	struct callsieve_stack *stack;
	int r = 0;

	if (*on > 0 && *on - 1 != call->stack) {
		stack = stack_of(sieve, *on - 1);
		r = stack ? give_held(sieve, stack, call) : -ENOMEM;
	}
	*on = call->stack + 1;
	stack = r == 0 ? stack_of(sieve, call->stack) : NULL;
	if (!stack)
		return r < 0 ? r : -ENOMEM;
	if (call->kind == PTD_CALL_ENTER)
		return vec_push(&stack->frames, (struct callsieve_frame){ .enter = *call });
	if (call->kind == PTD_CALL_LEAVE)
		return leave(sieve, stack, call);
	r = give_held(sieve, stack, call);
	if (r == 0 && call->n_moved > 0)
		r = move(sieve, call);
	return r < 0 ? r : vec_push(&sieve->given, *call);
}

int callsieve_take(struct callsieve *sieve, const struct ptd_call_batch *calls,
		   struct ptd_call_batch *ret_calls)
{
	uint32_t *on = vec_at(&sieve->on, calls->thread->id, 0);
	int r = on ? 0 : -ENOMEM;

	sieve->given.n = 0;
	for (size_t i = 0; i < calls->n_calls && r == 0; i++)
		r = take(sieve, on, &calls->calls[i]);
	*ret_calls = *calls;
	ret_calls->calls = sieve->given.items;
	ret_calls->n_calls = sieve->given.n;
	return r;
}

void callsieve_count(struct callsieve *sieve, const struct ptd_call_batch *calls)
{
	for (size_t i = 0; i < calls->n_calls; i++)
		if (calls->calls[i].kind == PTD_CALL_LEAVE)
			sieve->n_by_duration[63 - __builtin_clzll(calls->calls[i].t_total | 1)]++;
}

uint64_t callsieve_duration_of(const struct callsieve *sieve, uint64_t n)
{
	uint64_t n_calls = 0, n_longer = 0;
	unsigned i = 64;

	for (unsigned k = 0; k < 64; k++)
		n_calls += sieve->n_by_duration[k];
	while (i > 0 && (n_longer + sieve->n_by_duration[i - 1]) * n <= n_calls)
		n_longer += sieve->n_by_duration[--i];
	return i < 64 ? UINT64_C(1) << i : UINT64_MAX;
}
