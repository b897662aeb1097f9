/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/calls/callstack.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

/* Frames that are kept behind gaps; of more, the outermost are forgotten. */
#define HIDDEN_MAX 16384

/* Functions that are kept which were left by a jump, for each frame: the first half of them, since
 * a loop of an interpreter is among these, and those that were left last. The number of frames
 * bounds how many there are in all. */
#define JUMPED_MAX       32
#define JUMPED_PER_FRAME 4

void callstack_deinit(struct callstack *stack, struct call_list *list)
{
	list->n_frames -= stack->frames.n + stack->hidden.n;
	vec_deinit(&stack->frames);
	vec_deinit(&stack->hidden);
	vec_deinit(&stack->suspended);
	vec_deinit(&stack->traps);
	vec_deinit(&stack->jumped);
	vec_deinit(&stack->alike);
	vec_deinit(&stack->refuted);
}

void callstack_detach(struct callstack *stack, size_t n)
{
	while (stack->suspended.n > 0 && stack->suspended.items[stack->suspended.n - 1].frame >= n)
		stack->suspended.n--;
	while (stack->traps.n > 0 && stack->traps.items[stack->traps.n - 1].frame >= n)
		stack->traps.n--;
	while (stack->jumped.n > 0 && stack->jumped.items[stack->jumped.n - 1].frame >= n)
		stack->jumped.n--;
	stack->n_attached = n;
}

void callstack_begin(struct callstack *stack, const struct call_place *place)
{
	stack->low = 0;
	stack->t0 = place->t;
	stack->n0 = place->n + stack->bias;
}

static bool is_silent(const struct frame *frame)
{
	return frame->kind == FRAME_STUB || frame->kind == FRAME_LOCAL;
}

/* What is entered from a stub comes behind it. */
static void show_stub(struct callstack *stack, struct call_list *list,
		      const struct functions *functions, const struct call_place *place)
{
	struct frame *frame = callstack_top(stack);

	while (frame && frame->kind == FRAME_LOCAL && frame > stack->frames.items)
		frame--;
	if (!frame || frame->kind != FRAME_STUB)
		return;
	frame->kind = FRAME_FUNCTION;
	callstack_say_entered(stack, list, functions, place, frame);
}

void callstack_enter(struct callstack *stack, struct call_list *list,
		     const struct functions *functions, const struct call_place *place,
		     const struct frame *frame)
{
	struct frame *below = callstack_top(stack), *top;

	if (below && (stack->n_too_deep > 0 || !callstack_has_room(stack, list))) {
		stack->n_too_deep++;
		list->stats.n_too_deep++;
		return;
	}
	if (frame->kind != FRAME_LOCAL)
		show_stub(stack, list, functions, place);
	if (stack->frames.n == stack->frames.n_capacity && vec_reserve(&stack->frames, 1) < 0) {
		list->r = -ENOMEM;
		return;
	}
	below = callstack_top(stack);
	top = &stack->frames.items[stack->frames.n++];
	list->n_frames++;
	*top = *frame;
	top->t = place->t;
	top->n = place->n + stack->bias;
	top->t_inner = top->n_inner = 0;
	if (below) {
		top->depth = below->depth + (frame->kind != FRAME_LOCAL);
	} else if (frame->how == PTD_CALL_BY_INFERENCE || frame->how == PTD_CALL_BY_RESUMPTION) {
		top->depth = --stack->low;
		top->t_inner = callstack_since(top->t, stack->t0);
		top->n_inner = top->n - stack->n0;
		top->t = stack->t0;
		top->n = stack->n0;
	} else {
		top->depth = stack->low;
	}
	if (!is_silent(top))
		callstack_say_entered(stack, list, functions, place, top);
}

void callstack_leave(struct callstack *stack, struct call_list *list,
		     const struct functions *functions, const struct call_place *place,
		     enum ptd_call_how how)
{
	struct frame *top = callstack_top(stack);

	assert(top);
	stack->n_too_deep = 0;
	/* It was not known where a stub leads to when it was entered. */
	if (top->kind == FRAME_STUB)
		callstack_name(stack, list, functions, place, top->function);
	if (top->kind == FRAME_LOCAL)
		callstack_pop(stack, list, top, top->t_inner, top->n_inner);
	else
		callstack_leave_shown(stack, list, functions, place, how);
}

/* The function of the innermost frame is left by a jump. Return: 0 or -ENOMEM. */
static int note_jumped(struct callstack *stack)
{
	const size_t frame = stack->frames.n - 1;
	const uint32_t function = stack->frames.items[frame].function;
	size_t first = stack->jumped.n;

	/* The function itself is open below a local call. */
	if (stack->frames.items[frame].kind == FRAME_LOCAL ||
	    stack->jumped.n >= JUMPED_MAX + JUMPED_PER_FRAME * stack->frames.n)
		return 0;
	for (; first > 0 && stack->jumped.items[first - 1].frame == frame; first--)
		if (stack->jumped.items[first - 1].function == function)
			return 0;
	if (stack->jumped.n - first == JUMPED_MAX) {
		first += JUMPED_MAX / 2;
		stack->jumped.n--;
		memmove(&stack->jumped.items[first], &stack->jumped.items[first + 1],
			(stack->jumped.n - first) * sizeof(*stack->jumped.items));
	}
	stack->n_attached = frame + 1;
	return vec_push(&stack->jumped, { function, frame });
}

/* Enter @frame in the place of the innermost one, to which what belonged to that belongs. */
static void replace(struct callstack *stack, struct call_list *list,
		    const struct functions *functions, const struct call_place *place,
		    const struct frame *frame, enum ptd_call_how how)
{
	const size_t n_suspended = stack->suspended.n, n_jumped = stack->jumped.n;

	callstack_leave(stack, list, functions, place, how);
	callstack_enter(stack, list, functions, place, frame);
	stack->suspended.n = n_suspended;
	stack->jumped.n = n_jumped;
	stack->n_attached = stack->frames.n;
}

void callstack_tail(struct callstack *stack, struct call_list *list,
		    const struct functions *functions, const struct call_place *place,
		    const struct frame *frame)
{
	if (note_jumped(stack) < 0)
		list->r = -ENOMEM;
	else
		replace(stack, list, functions, place, frame, PTD_CALL_BY_TAIL);
}

void callstack_reopen(struct callstack *stack, struct call_list *list,
		      const struct functions *functions, const struct call_place *place, size_t i,
		      bool is_ambiguous)
{
	const struct jumped jumped = stack->jumped.items[i];
	struct frame frame = stack->frames.items[jumped.frame];

	callstack_leave_to(stack, list, functions, place, jumped.frame + 1, PTD_CALL_BY_UNWINDING);
	stack->jumped.n = i;
	frame.function = jumped.function;
	frame.how = PTD_CALL_BY_REOPENING;
	frame.ambiguous = is_ambiguous;
	if (frame.kind != FRAME_SIGNAL && frame.kind != FRAME_KERNEL)
		frame.kind = frame.kind == FRAME_RESTORER ? FRAME_SIGNAL : FRAME_FUNCTION;
	replace(stack, list, functions, place, &frame, PTD_CALL_BY_RETURN);
}

void callstack_say_switch(const struct callstack *stack, struct call_list *list,
			  const struct functions *functions, const struct call_place *place,
			  size_t n_moved, uint32_t moved_to)
{
	const struct frame *top = callstack_top(stack);

	if (vec_push(&list->calls, { .kind = PTD_CALL_SWITCH,
				     .ambiguous = stack->alike.n > 0 || stack->is_guessed,
				     .depth = top ? top->depth : stack->low,
				     .stack = stack->id,
				     .n_moved = (uint32_t)n_moved,
				     .moved_to = moved_to,
				     .function = top ? functions->all.items[top->function] : NULL,
				     .run = (uint32_t)place->run,
				     .t = place->t,
				     .n_insns = place->n,
				     .from = place->from,
				     .to = place->to }) < 0)
		list->r = -ENOMEM;
	list->stats.n_switches++;
}

void callstack_leave_to(struct callstack *stack, struct call_list *list,
			const struct functions *functions, const struct call_place *place, size_t n,
			enum ptd_call_how how)
{
	while (stack->frames.n > n)
		callstack_leave(stack, list, functions, place, how);
}

void callstack_name(struct callstack *stack, struct call_list *list,
		    const struct functions *functions, const struct call_place *place,
		    uint32_t function)
{
	struct frame *top = callstack_top(stack);

	assert(top && top->kind == FRAME_STUB);
	top->kind = FRAME_FUNCTION;
	top->function = function;
	callstack_say_entered(stack, list, functions, place, top);
}

bool callstack_bind(struct callstack *stack, struct call_list *list,
		    const struct functions *functions, const struct call_place *place,
		    uint32_t function)
{
	const struct frame *top = callstack_top(stack);

	if (!top || top->kind != FRAME_STUB || stack->n_too_deep > 0 || stack->traps.n > 0)
		return false;
	callstack_name(stack, list, functions, place, function);
	return true;
}

/* Make room for @n hidden frames more, and for some that the next gaps hide: all must be moved. */
static void forget_hidden(struct callstack *stack, struct call_list *list, size_t n)
{
	const size_t n_all = stack->hidden.n + n;
	size_t n_gone;

	if (n_all <= HIDDEN_MAX)
		return;
	n_gone = n_all - HIDDEN_MAX + HIDDEN_MAX / 8;
	if (n_gone > stack->hidden.n)
		n_gone = stack->hidden.n;
	stack->hidden.n -= n_gone;
	list->n_frames -= n_gone;
	memmove(stack->hidden.items, stack->hidden.items + n_gone,
		stack->hidden.n * sizeof(*stack->hidden.items));
}

void callstack_break(struct callstack *stack, struct call_list *list,
		     const struct functions *functions, const struct call_place *place)
{
	const size_t n = stack->frames.n;
	const size_t first = n > HIDDEN_MAX ? n - HIDDEN_MAX : 0;

	forget_hidden(stack, list, n - first);
	if (vec_reserve(&stack->hidden, n - first) < 0) {
		list->r = -ENOMEM;
		return;
	}
	for (size_t i = first; i < n; i++) {
		struct frame frame = stack->frames.items[i];

		if (frame.kind == FRAME_LOCAL)
			continue;
		if (frame.kind == FRAME_STUB)
			frame.kind = FRAME_FUNCTION;
		stack->hidden.items[stack->hidden.n++] = frame;
		list->n_frames++;
	}
	callstack_leave_to(stack, list, functions, place, 0, PTD_CALL_BY_GAP);
	stack->n_old = 0;
	stack->is_whole = false;
}
