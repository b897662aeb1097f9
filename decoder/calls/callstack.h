/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Call stack
 *
 * The functions that are open on one stack, and the calls that say how they came and went. What
 * fails here for want of memory is kept in the list of calls: the caller looks at it when it is
 * done with a batch.
 *
 * Some frames are silent. A stub of the PLT is not given out: it is taken for the beginning of the
 * function that it jumps to. Neither is a call within a function, which some code does to find out
 * its address, or to jump in a way that the CPU does not predict.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/calls/functions.h"
#include "ptd/calls.h"
#include "util/vec.h"

enum frame_kind {
	FRAME_FUNCTION,
	FRAME_STUB,     /* silent: which function it leads to is not known yet */
	FRAME_LOCAL,    /* silent: a call within the function below it */
	FRAME_SIGNAL,   /* a handler: ret is where the signal interrupted the thread */
	FRAME_RESTORER, /* the same, and the handler has returned */
	FRAME_KERNEL,   /* the kernel's entry: ret is where it was entered from */

	/* Functions that go on on another stack: see enum function_role. */
	FRAME_PARK,
	FRAME_GROW,
	FRAME_SWAP,
	FRAME_SET,
	FRAME_GO,
};

struct frame {
	uint64_t ret;  /* address at which the function below goes on; 0: not known */
	uint64_t t, n; /* when it was entered, in time and in the stack's instructions */
	uint64_t t_inner, n_inner; /* of that spent in functions that it called */
	uint32_t function;
	int32_t depth;
	uint8_t kind; /* enum frame_kind */
	uint8_t how;  /* enum ptd_call_how */
	bool ambiguous;
	bool by_syscall; /* a signal or the kernel's code came by a system call */
};

/* What all stacks share. */
struct call_list {
	VEC(struct ptd_call) calls;
	int r; /* of what failed first */
	size_t n_frames;
	struct ptd_calls_stats stats;
};

/* Where in the stream something happens. */
struct call_place {
	size_t run;
	uint64_t t, n; /* n: instructions of the thread */
	uint64_t from, to;
};

struct callstack {
	uint32_t id;
	VEC(struct frame) frames; /* the innermost last */
	VEC(struct frame) hidden; /* those that were open before a gap */
	int32_t low;              /* depth of the lowest frame since the stack's start or the gap */
	uint64_t t0, n0;          /* when that was */
	uint64_t bias;            /* n of the stack is n of the thread and this */
	uint64_t n_too_deep;      /* functions open that have no frames */
	bool is_whole;            /* the stack's beginning was seen: nothing is below */
	bool is_lost; /* nothing that was open fitted, once: what is below is not inferred again */

	/* What a thread had executed last when it was interrupted, and the frame that did so. */
	VEC(struct suspended {
		struct ptd_run last;
		size_t frame;
	})
	suspended;

	/* OCaml's handlers of exceptions that are installed, and the frames that did so. */
	VEC(struct trap {
		uint64_t handler;
		size_t frame;
	})
	traps;

	/* Functions that were left by a jump, and the frames of those that are in their place. */
	VEC(struct jumped {
		uint32_t function;
		size_t frame;
	})
	jumped;
	size_t n_attached; /* only the first @n_attached frames have entries in these three */

	/* Of stacks that threads change between: see stackpool.h. */
	uint32_t thread;   /* id of the one that was on it last */
	uint64_t parking;  /* number of the time that it is parked for; 0: it is not */
	uint64_t n_parked; /* instructions executed on it, then */
	uint64_t early;    /* number of its entry among those that went on early; 0: it has none */
	uint64_t resumed_ip, resumed_t; /* where and when a goroutine went on; 0: it did not */
	bool is_guessed; /* a stack that was not seen to wait may have gone on instead of it */
	VEC(struct alike {
		struct callstack *stack; /* borrowed; it has an entry for this stack, too */
		size_t own;              /* frames that might have to be exchanged */
		size_t other;            /* for this number of the other's */
	})
	alike;
	/* Of these, what the thread turned out not to be on since the stack went on. */
	VEC(struct refuted {
		struct alike alike;
		uint64_t parking; /* of the other stack, then */
	})
	refuted;
	size_t n_old; /* frames that were not left since an entry was added */
	struct callstack *next, *next_unused; /* see struct call_world */
};

void callstack_deinit(struct callstack *stack, struct call_list *list);

static inline struct frame *callstack_top(const struct callstack *stack)
{
	return stack->frames.n > 0 ? &stack->frames.items[stack->frames.n - 1] : NULL;
}

/* --- the calls -------------------------------------------------------------------------------- */

/*
 * Add the call by which the function of @frame was entered or left. All fields are set: to clear
 * the call first takes as long as all the rest.
 */
static inline struct ptd_call *
callstack_add_call(const struct callstack *stack, struct call_list *list,
		   const struct functions *functions, const struct call_place *place,
		   const struct frame *frame, enum ptd_call_kind kind, uint8_t how)
{
	struct ptd_call *call;

	if (list->calls.n == list->calls.n_capacity && vec_reserve(&list->calls, 1) < 0) {
		list->r = -ENOMEM;
		return NULL;
	}
	call = &list->calls.items[list->calls.n++];
	call->kind = (uint8_t)kind;
	call->how = how;
	call->ambiguous = frame->ambiguous || stack->alike.n > 0 ||
			  (stack->is_guessed && stack->frames.n <= stack->n_old);
	call->depth = frame->depth;
	call->stack = stack->id;
	call->n_moved = 0;
	call->moved_to = 0;
	call->run = (uint32_t)place->run;
	call->function = functions->all.items[frame->function];
	call->t = place->t;
	call->n_insns = place->n;
	call->from = place->from;
	call->to = place->to;
	call->t_total = 0;
	call->t_self = 0;
	call->n_insns_total = 0;
	call->n_insns_self = 0;
	return call;
}

/* Say that the function of @frame was entered. */
static inline void callstack_say_entered(struct callstack *stack, struct call_list *list,
					 const struct functions *functions,
					 const struct call_place *place, const struct frame *frame)
{
	struct ptd_call *call =
	    callstack_add_call(stack, list, functions, place, frame, PTD_CALL_ENTER, frame->how);

	if (!call)
		return;
	call->t = frame->t;
	/* What is found to have been open may be older than the thread's stay on the stack. */
	call->n_insns = frame->n - stack->bias <= place->n ? frame->n - stack->bias : 0;
	list->stats.n_entered[frame->how]++;
}

/* --- what is open ----------------------------------------------------------------------------- */

/* Return: whether one frame more may be open. */
static inline bool callstack_has_room(const struct callstack *stack, const struct call_list *list)
{
	return stack->frames.n < PTD_CALLS_DEPTH_MAX && list->n_frames < PTD_CALLS_FRAMES_MAX;
}

/* Forget what belongs to the frames behind the first @n. */
void callstack_detach(struct callstack *stack, size_t n);

/* The times of several CPUs may go back. */
static inline uint64_t callstack_since(uint64_t now, uint64_t then)
{
	return now > then ? now - then : 0;
}

/* Remove the innermost frame @top; @t and @n of its cost were spent in what is below it. */
static inline void callstack_pop(struct callstack *stack, struct call_list *list, struct frame *top,
				 uint64_t t, uint64_t n)
{
	const size_t left = (size_t)(top - stack->frames.items);

	stack->frames.n = left;
	list->n_frames--;
	if (left < stack->n_attached)
		callstack_detach(stack, left);
	if (left < stack->n_old)
		stack->n_old = left;
	if (left > 0) {
		top[-1].t_inner += t;
		top[-1].n_inner += n;
	}
}

/* Leave the innermost function, whose frame is not silent. */
static inline void callstack_leave_shown(struct callstack *stack, struct call_list *list,
					 const struct functions *functions,
					 const struct call_place *place, enum ptd_call_how how)
{
	struct frame *top = callstack_top(stack);
	const uint64_t t = callstack_since(place->t, top->t);
	const uint64_t n = place->n + stack->bias - top->n;
	struct ptd_call *call =
	    callstack_add_call(stack, list, functions, place, top, PTD_CALL_LEAVE, (uint8_t)how);

	if (call) {
		call->t_total = t;
		call->t_self = callstack_since(t, top->t_inner);
		call->n_insns_total = n;
		call->n_insns_self = callstack_since(n, top->n_inner);
		list->stats.n_left[how]++;
	}
	callstack_pop(stack, list, top, t, n);
}

/* Leave the innermost function, which there is. */
void callstack_leave(struct callstack *stack, struct call_list *list,
		     const struct functions *functions, const struct call_place *place,
		     enum ptd_call_how how);

/* Begin, with nothing known about what is open. */
void callstack_begin(struct callstack *stack, const struct call_place *place);

/*
 * Enter a function. Of @frame the fields ret, function, kind and how are taken, and of a function
 * that has been open ambiguous. If the stack is empty and @frame->how is PTD_CALL_BY_INFERENCE or
 * PTD_CALL_BY_RESUMPTION, it is below all that was there.
 */
void callstack_enter(struct callstack *stack, struct call_list *list,
		     const struct functions *functions, const struct call_place *place,
		     const struct frame *frame);

/*
 * The commonest of what can happen. Each is done if what is open lets no other rule apply.
 *
 * Return: whether it was done; if not, the rules decide (callthread.c).
 */

/* Enter the function or stub (@kind) @function, by a call that returns to @ret. */
static inline bool callstack_call(struct callstack *stack, struct call_list *list,
				  const struct functions *functions, const struct call_place *place,
				  uint32_t function, enum frame_kind kind, uint64_t ret)
{
	const size_t n = stack->frames.n;
	struct frame *const top = stack->frames.items + n;

	/* The rules make room, too. */
	if (n == 0 || top[-1].kind != FRAME_FUNCTION || stack->n_too_deep > 0 ||
	    !callstack_has_room(stack, list) || n == stack->frames.n_capacity)
		return false;
	*top = (struct frame){ .ret = ret,
			       .t = place->t,
			       .n = place->n + stack->bias,
			       .function = function,
			       .depth = top[-1].depth + 1,
			       .kind = (uint8_t)kind,
			       .how = PTD_CALL_BY_CALL };
	stack->frames.n = n + 1;
	list->n_frames++;
	if (kind == FRAME_FUNCTION)
		callstack_say_entered(stack, list, functions, place, top);
	return true;
}

/* The innermost frame is a stub's, which jumps to @function. */
bool callstack_bind(struct callstack *stack, struct call_list *list,
		    const struct functions *functions, const struct call_place *place,
		    uint32_t function);

/* Return from the innermost function. */
static inline bool callstack_return(struct callstack *stack, struct call_list *list,
				    const struct functions *functions,
				    const struct call_place *place)
{
	const struct frame *top = callstack_top(stack);

	if (!top || top->kind != FRAME_FUNCTION || top->ret != place->to || stack->frames.n == 1 ||
	    stack->n_too_deep > 0 || stack->alike.n > 0)
		return false;
	callstack_leave_shown(stack, list, functions, place, PTD_CALL_BY_RETURN);
	return true;
}

/*
 * The innermost function is left for another one, by a jump. It is kept in mind that a return may
 * lead back into it; of too many on one frame, some are forgotten.
 */
void callstack_tail(struct callstack *stack, struct call_list *list,
		    const struct functions *functions, const struct call_place *place,
		    const struct frame *frame);

/*
 * Control comes back into the function of the entry @i of those that were left by a jump. What is
 * in its place is left, and it is entered anew there. If @is_ambiguous, another
 * activation of it may be the one.
 */
void callstack_reopen(struct callstack *stack, struct call_list *list,
		      const struct functions *functions, const struct call_place *place, size_t i,
		      bool is_ambiguous);

/* Say that the thread is on @stack now, and that @n_moved of its frames went to @moved_to. */
void callstack_say_switch(const struct callstack *stack, struct call_list *list,
			  const struct functions *functions, const struct call_place *place,
			  size_t n_moved, uint32_t moved_to);

/* Leave functions until only @n frames are left. */
void callstack_leave_to(struct callstack *stack, struct call_list *list,
			const struct functions *functions, const struct call_place *place, size_t n,
			enum ptd_call_how how);

/* The innermost frame is a stub's: it leads to @function, which is entered with it. */
void callstack_name(struct callstack *stack, struct call_list *list,
		    const struct functions *functions, const struct call_place *place,
		    uint32_t function);

/* Leave all because of a gap, and hide it. */
void callstack_break(struct callstack *stack, struct call_list *list,
		     const struct functions *functions, const struct call_place *place);
