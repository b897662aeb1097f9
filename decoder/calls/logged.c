/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/calls/logged.h"

#include "decoder/calls/callthread.h"

/* How many frames may be looked at for each function that is entered. */
#define SEARCH_ROOM_PER_CALL 4

#define NOT_OPEN SIZE_MAX

/* A call that is taken. */
struct statement {
	struct callthread *thread;
	struct call_world *world;
	struct call_place place;
	uint32_t function;
};

static void enter(struct statement *s, enum ptd_call_how how)
{
	const struct frame frame = { .function = s->function, .how = (uint8_t)how };

	callstack_enter(s->thread->stack, &s->world->list, &s->world->functions, &s->place, &frame);
	s->thread->search_room += SEARCH_ROOM_PER_CALL;
}

static void leave(struct statement *s, enum ptd_call_how how)
{
	callstack_leave(s->thread->stack, &s->world->list, &s->world->functions, &s->place, how);
}

/* Return: the index of the innermost activation of the function among @frames; or NOT_OPEN. */
static size_t find_open(struct statement *s, const struct frame *frames, size_t n)
{
	const size_t n_searched = n < s->thread->search_room ? n : (size_t)s->thread->search_room;

	for (size_t i = n; i-- > n - n_searched;)
		if (frames[i].function == s->function)
			return i;
	s->thread->search_room -= n_searched;
	return NOT_OPEN;
}

/* The function was open before all that is known: enter it. */
static void enter_below(struct statement *s)
{
	struct callstack *stack = s->thread->stack;
	const size_t i = find_open(s, stack->hidden.items, stack->hidden.n);

	callstack_leave_to(stack, &s->world->list, &s->world->functions, &s->place, 0,
			   PTD_CALL_BY_UNWINDING);
	stack->n_too_deep = 0;
	if (i != NOT_OPEN) {
		s->world->list.n_frames -= stack->hidden.n - i;
		stack->hidden.n = i;
	}
	enter(s, i != NOT_OPEN ? PTD_CALL_BY_RESUMPTION : PTD_CALL_BY_INFERENCE);
}

/* The function is left, by a return or a jump. */
static void take_leave(struct statement *s, enum ptd_call_how how)
{
	struct callstack *stack = s->thread->stack;
	const struct frame *top = callstack_top(stack);

	/* It is one of those that were too deep to be entered. */
	if (stack->n_too_deep > 0) {
		stack->n_too_deep--;
		return;
	}
	if (!top || top->function != s->function) {
		const size_t i = find_open(s, stack->frames.items, stack->frames.n);

		if (i != NOT_OPEN)
			callstack_leave_to(stack, &s->world->list, &s->world->functions, &s->place,
					   i + 1, PTD_CALL_BY_UNWINDING);
		else
			enter_below(s);
	}
	if (s->world->list.r == 0)
		leave(s, how);
}

/* The innermost function is left by a jump, if a jump led to it; else the first of the chain is. */
static void take_chain(struct statement *s)
{
	const struct callstack *stack = s->thread->stack;
	const struct frame *top = callstack_top(stack);

	if (top && stack->n_too_deep == 0 && top->how == PTD_CALL_BY_TAIL)
		s->function = top->function;
	take_leave(s, PTD_CALL_BY_TAIL);
}

static void take(struct statement *s, uint8_t kind)
{
	struct callthread *thread = s->thread;
	const bool was_in_tail = thread->is_in_tail;

	if (thread->after == CALL_AFTER_NOTHING)
		callstack_begin(thread->stack, &s->place);
	thread->after = CALL_AFTER_INSN;
	thread->is_in_tail = kind == PTD_LOGGED_TAIL || kind == PTD_LOGGED_TAIL_CHAIN;
	switch (kind) {
	case PTD_LOGGED_ENTER:
		enter(s, was_in_tail ? PTD_CALL_BY_TAIL : PTD_CALL_BY_CALL);
		break;
	case PTD_LOGGED_LEAVE:
		take_leave(s, PTD_CALL_BY_RETURN);
		break;
	case PTD_LOGGED_TAIL:
		take_leave(s, PTD_CALL_BY_TAIL);
		break;
	case PTD_LOGGED_POINT:
		enter(s, was_in_tail ? PTD_CALL_BY_TAIL : PTD_CALL_BY_CALL);
		if (s->world->list.r == 0)
			take_leave(s, PTD_CALL_BY_RETURN);
		break;
	default:
		take_chain(s);
		break;
	}
}

int logged_take(struct callthread *thread, struct call_world *world,
		const struct ptd_logged *logged, size_t *at, size_t last)
{
	int r = 0;

	while (*at < last && world->list.calls.n < CALLTHREAD_CALLS && r == 0) {
		const struct ptd_logged_call *call = &logged->calls[*at];
		struct statement s = {
			.thread = thread,
			.world = world,
			.place = { .run = *at, .t = call->t },
		};

		r = functions_of_symbol(&world->functions, &logged->batch, call->object,
					call->symbol, &s.function);
		if (r < 0)
			break;
		take(&s, call->kind);
		thread->shown.t_last = call->t;
		r = world->list.r;
		(*at)++;
	}
	return r;
}
