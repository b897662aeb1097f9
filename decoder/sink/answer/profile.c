/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/sink/answer/profile.h"

#include <errno.h>
#include <string.h>

void profile_deinit(struct profile *profile)
{
	vec_deinit_each(&profile->functions, function, {
		histogram_deinit(&function->t.whole);
		histogram_deinit(&function->n_insns.whole);
	});
	open_stacks_deinit(&profile->stacks);
}

/* Return: whether there is room for what is known of the function @id. */
static bool make_functions(struct profile *profile, uint32_t id)
{
	return vec_at(&profile->functions, id, {});
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

/* Return: what is known of the function that @call enters; NULL: no memory. */
static inline struct profile_function *get_function(struct profile *profile,
						    const struct ptd_call *call)
{
	const uint32_t id = call->function->id;
	struct profile_function *f;

	if (id >= profile->functions.n && !make_functions(profile, id))
		return NULL;
	f = &profile->functions.items[id];
	f->function = call->function;
	return f;
}

/* Count the call of @frame, which ends by @leave, to its function @f. Return: 0 or -ENOMEM. */
static inline int add_call(struct profile *profile, struct profile_function *f,
			   const struct open_frame *frame, const struct ptd_call *leave)
{
	const bool is_whole = profile_is_whole(frame, leave), is_outermost = f->n_open == 0;
	int r;

	if (!profile_goes_on(frame->how)) {
		f->n_calls++;
		f->n_partial += !is_whole;
		profile->n_calls++;
		profile->n_partial += !is_whole;
	}
	profile->t_self += leave->t_self;
	profile->n_insns += leave->n_insns_self;
	r = add_cost(&f->t, leave->t_self, leave->t_total, is_outermost, is_whole);
	return r < 0 ? r
		     : add_cost(&f->n_insns, leave->n_insns_self, leave->n_insns_total,
				is_outermost, is_whole);
}

static inline int enter(struct profile *profile, struct open_stack *stack,
			const struct ptd_call *call)
{
	struct profile_function *f = get_function(profile, call);

	if (!f || open_stack_push(stack, call) < 0)
		return -ENOMEM;
	f->n_open++;
	return 0;
}

static inline int leave(struct profile *profile, struct open_stack *stack,
			const struct ptd_call *call)
{
	const struct open_frame *top = open_stack_top(stack);
	struct profile_function *f;
	struct open_frame frame;

	if (!top)
		return 0;
	frame = *top;
	f = &profile->functions.items[frame.function->id];
	f->n_open--;
	open_stack_pop(stack);
	return add_call(profile, f, &frame, call);
}

/* A function is entered by @call, and left by the next one: it need not lie on the stack. */
static inline int take_leaf(struct profile *profile, const struct ptd_call *call)
{
	const struct open_frame frame = open_frame_of(call);
	struct profile_function *f = get_function(profile, call);

	return f ? add_call(profile, f, &frame, call + 1) : -ENOMEM;
}

static inline int take_call(struct profile *profile, const struct ptd_call *call)
{
	struct open_stack *stack = open_stacks_get(&profile->stacks, call->stack);

	if (!stack)
		return -ENOMEM;
	if (call->kind == PTD_CALL_LEAVE)
		return leave(profile, stack, call);
	return call->kind == PTD_CALL_ENTER ? enter(profile, stack, call) : 0;
}

int profile_add(struct profile *profile, const struct ptd_call_batch *batch)
{
	const struct ptd_call *call = batch->calls, *const end = call + batch->n_calls;
	int r = 0;

	while (call < end && r == 0) {
		if (call->stack != profile->stack)
			r = switch_stack(profile, call);
		if (r < 0)
			return r;
		if (end - call > 1 && open_stacks_is_leaf(call)) {
			r = take_leaf(profile, call);
			call += 2;
		} else {
			r = take_call(profile, call++);
		}
	}
	return r;
}

/* --- the list --------------------------------------------------------------------------------- */

int profile_list(const struct profile *profile, struct profile_list *ret_list)
{
	struct profile_list list = {};

	for (size_t i = 0; i < profile->functions.n; i++)
		if (profile->functions.items[i].function &&
		    vec_push(&list, &profile->functions.items[i]) < 0) {
			vec_deinit(&list);
			return -ENOMEM;
		}
	*ret_list = list;
	return 0;
}

static int compare(const void *pa, const void *pb, void *by_time)
{
	const struct profile_function *a = *(const struct profile_function *const *)pa;
	const struct profile_function *b = *(const struct profile_function *const *)pb;
	const struct cost *x = by_time ? &a->t : &a->n_insns, *y = by_time ? &b->t : &b->n_insns;

	return COMPARE(y->self, x->self)
		       ?: COMPARE(y->total, x->total)
		       ?: strcmp(a->function->name, b->function->name)
		       ?: COMPARE(a->function->id, b->function->id);
}

void profile_sort(struct profile_list *list, bool by_time)
{
	if (list->n > 0)
		qsort_r(list->items, list->n, sizeof(*list->items), compare, by_time ? list : NULL);
}
