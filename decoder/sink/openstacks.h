/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Open stacks
 *
 * The functions that are open on each stack of the call stream, each with what a sink remembers of
 * it. Sinks that follow the call stream keep one of these.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "ptd/calls.h"
#include "util/vec.h"

/* A function that is open. */
struct open_frame {
	const struct ptd_function *function; /* borrowed */
	uint64_t t;                          /* when it was entered; how, and at which depth */
	int32_t depth;
	uint8_t how;
	bool ambiguous;

	/* The sink's, and 0 at first. */
	bool is_printed;
	union {
		uint64_t n_left_out; /* calls below it that were left out of the output */
		uint64_t chain;   /* number of the function that was called, if jumps led on from it
				 * to this one; 0: none did */
		uint32_t task;    /* what stands for the call in the output */
		const void *file; /* of several, the one in which it begins; borrowed */
	};
};

struct open_stack {
	VEC(struct open_frame) frames; /* the innermost is the last */
	int32_t depth_min;             /* least depth at which a function was open */
};

struct open_stacks {
	VEC(struct open_stack) items; /* by the number of the stack */
};

void open_stacks_deinit(struct open_stacks *stacks);

/* For open_stacks_get(): make the stack. Return: it; NULL: no memory. */
struct open_stack *open_stacks_make(struct open_stacks *stacks, uint32_t id);

/*
 * Return: the stack with the number @id, which is empty if it is new, valid until the next call;
 *         NULL: no memory.
 */
static inline struct open_stack *open_stacks_get(struct open_stacks *stacks, uint32_t id)
{
	return id < stacks->items.n ? &stacks->items.items[id] : open_stacks_make(stacks, id);
}

/* Return: the function that @call enters. */
static inline struct open_frame open_frame_of(const struct ptd_call *call)
{
	return (struct open_frame){ .function = call->function,
				    .t = call->t,
				    .depth = call->depth,
				    .how = call->how,
				    .ambiguous = call->ambiguous };
}

/*
 * Return: whether the function that @call enters is left by the next call, which there is. Such a
 *         function need not be pushed.
 */
static inline bool open_stacks_is_leaf(const struct ptd_call *call)
{
	return call->kind == PTD_CALL_ENTER && call[1].kind == PTD_CALL_LEAVE &&
	       call[1].stack == call->stack;
}

/* Add the function that @call enters. Return: 0 or -ENOMEM. */
_must_check_ static inline int open_stack_push(struct open_stack *stack,
					       const struct ptd_call *call)
{
	const size_t n = stack->frames.n;

	if (n == stack->frames.n_capacity && vec_reserve(&stack->frames, 1) < 0)
		return -ENOMEM;
	if (n == 0)
		stack->depth_min = call->depth < 0 ? call->depth : 0;
	else if (call->depth < stack->depth_min)
		stack->depth_min = call->depth;
	stack->frames.items[stack->frames.n++] = open_frame_of(call);
	return 0;
}

/* Return: the innermost function, or NULL. */
static inline struct open_frame *open_stack_top(const struct open_stack *stack)
{
	return stack->frames.n > 0 ? &stack->frames.items[stack->frames.n - 1] : NULL;
}

/*
 * Remove the innermost function, if there is one; what open_stack_top() returned is no longer
 * valid. An empty stack keeps no memory: as a rule, its fiber or thread has ended.
 */
static inline void open_stack_pop(struct open_stack *stack)
{
	if (stack->frames.n > 1)
		stack->frames.n--;
	else
		vec_deinit(&stack->frames);
}

/*
 * Move functions from one stack to another, as the PTD_CALL_SWITCH @call asks for, if it does.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int open_stacks_move(struct open_stacks *stacks, const struct ptd_call *call);
