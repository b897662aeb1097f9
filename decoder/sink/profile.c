/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/sink/profile.h"

#include <errno.h>

void profile_deinit(struct profile *profile)
{
	for (size_t i = 0; i < profile->functions.n; i++) {
		histogram_deinit(&profile->functions.items[i].t.whole);
		histogram_deinit(&profile->functions.items[i].n_insns.whole);
	}
	vec_deinit(&profile->functions);
	open_stacks_deinit(&profile->stacks);
}

/* Return: whether there is room for what is known of the function @id. */
static bool make_functions(struct profile *profile, uint32_t id)
{
	while (profile->functions.n <= id)
		if (vec_push(&profile->functions, {}) < 0)
			return false;
	return true;
}

/*
 * The functions of one stack at a time are counted as open, so that whether a function is open
 * already is known without a search.
 */
static void count_open(struct profile *profile, uint32_t stack, int by)
{
	const struct open_stack *s;

	if (stack >= profile->stacks.items.n)
		return;
	s = &profile->stacks.items.items[stack];
	for (size_t i = 0; i < s->frames.n; i++) {
		const uint32_t id = s->frames.items[i].function->id;

		profile->functions.items[id].n_open += (uint32_t)by;
	}
}

/* Go on on another stack. Return: 0 or -ENOMEM. */
static int switch_stack(struct profile *profile, const struct ptd_call *call)
{
	int r = 0;

	count_open(profile, profile->stack, -1);
	if (call->kind == PTD_CALL_SWITCH)
		r = open_stacks_move(&profile->stacks, call);
	profile->stack = call->stack;
	count_open(profile, profile->stack, 1);
	return r;
}

static inline int add_cost(struct cost *cost, uint64_t self, uint64_t total, bool is_outermost,
			   bool is_whole)
{
	cost->self += self;
	cost->total += is_outermost ? total : 0;
	return is_whole ? histogram_add(&cost->whole, total) : 0;
}

static inline int enter(struct profile *profile, struct open_stack *stack,
			const struct ptd_call *call)
{
	const uint32_t id = call->function->id;
	struct profile_function *f;

	if (id >= profile->functions.n && !make_functions(profile, id))
		return -ENOMEM;
	if (open_stack_push(stack, call) < 0)
		return -ENOMEM;
	f = &profile->functions.items[id];
	f->function = call->function;
	f->n_open++;
	return 0;
}

static inline int leave(struct profile *profile, struct open_stack *stack,
			const struct ptd_call *call)
{
	const struct open_frame *frame = open_stack_top(stack);
	struct profile_function *f;
	bool is_whole, is_outermost;
	int r;

	if (!frame)
		return 0;
	f = &profile->functions.items[frame->function->id];
	is_whole = profile_is_whole(frame, call);
	is_outermost = --f->n_open == 0;
	/* A call that goes on behind a gap was counted before it. */
	if (frame->how != PTD_CALL_BY_RESUMPTION) {
		f->n_calls++;
		f->n_partial += !is_whole;
		profile->n_calls++;
		profile->n_partial += !is_whole;
	}
	profile->t_self += call->t_self;
	profile->n_insns += call->n_insns_self;
	open_stack_pop(stack);
	r = add_cost(&f->t, call->t_self, call->t_total, is_outermost, is_whole);
	return r < 0 ? r
		     : add_cost(&f->n_insns, call->n_insns_self, call->n_insns_total, is_outermost,
				is_whole);
}

int profile_add(struct profile *profile, const struct ptd_call_batch *batch)
{
	for (size_t i = 0; i < batch->n_calls; i++) {
		const struct ptd_call *call = &batch->calls[i];
		struct open_stack *stack;
		int r = 0;

		if (call->stack != profile->stack) {
			r = switch_stack(profile, call);
			if (r < 0)
				return r;
		}
		stack = open_stacks_get(&profile->stacks, call->stack);
		if (!stack)
			return -ENOMEM;
		if (call->kind == PTD_CALL_LEAVE)
			r = leave(profile, stack, call);
		else if (call->kind == PTD_CALL_ENTER)
			r = enter(profile, stack, call);
		if (r < 0)
			return r;
	}
	return 0;
}
