/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Retstack
 *
 * The return addresses of the last near calls, as the CPU keeps them (SDM volume 3, "Indirect
 * Transfer Compression for Returns"). Each near return takes the one on top, wherever it goes. If
 * it goes there, the CPU may compress it: then a bit of a TNT packet stands for it, and not a TIP.
 * The CPU compresses no return whose call lies before a PSB, an overflow, or code without packets:
 * the stack is emptied there. {} is an empty stack. When the stack is full, a call takes the place
 * of the oldest one.
 *
 * With an address goes a call of a segment (view.h), which knows the segment at the address; or
 * NULL. The user forgets these calls when the segments may be gone.
 */

#include <stdint.h>
#include <string.h>

struct seg_call;

#define RETSTACK_SIZE 64

struct retstack {
	uint64_t ips[RETSTACK_SIZE];
	struct seg_call *calls[RETSTACK_SIZE]; /* borrowed */
	unsigned top, depth;
};

static inline void retstack_forget_calls(struct retstack *stack)
{
	memset(stack->calls, 0, sizeof(stack->calls));
}

static inline void retstack_push(struct retstack *stack, uint64_t ip, struct seg_call *call)
{
	stack->top = (stack->top + 1) % RETSTACK_SIZE;
	stack->ips[stack->top] = ip;
	stack->calls[stack->top] = call;
	stack->depth += stack->depth < RETSTACK_SIZE;
}

/* Take the address of the last call; there must be one. What goes with it is @ret_call. */
static inline uint64_t retstack_pop(struct retstack *stack, struct seg_call **ret_call)
{
	const uint64_t ip = stack->ips[stack->top];

	*ret_call = stack->calls[stack->top];
	stack->top = (stack->top - 1) % RETSTACK_SIZE;
	stack->depth--;
	return ip;
}

/* A return goes elsewhere, or may do so: it takes the address of the last call, if there is one. */
static inline void retstack_drop(struct retstack *stack)
{
	struct seg_call *call;

	if (stack->depth > 0)
		(void)retstack_pop(stack, &call);
}
