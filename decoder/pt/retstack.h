/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Retstack
 *
 * The return addresses of the last calls, as the CPU keeps them. A near return to the one on top
 * may be compressed: then a bit of a TNT packet stands for it. {} is an empty stack. When the stack
 * is full, a call takes the place of the oldest one.
 */

#include <stdint.h>

#define RETSTACK_SIZE 64

struct retstack {
	uint64_t ips[RETSTACK_SIZE];
	unsigned top, depth;
};

static inline void retstack_push(struct retstack *stack, uint64_t ip)
{
	stack->top = (stack->top + 1) % RETSTACK_SIZE;
	stack->ips[stack->top] = ip;
	stack->depth += stack->depth < RETSTACK_SIZE;
}

/* Take the address of the last call; there must be one. */
static inline uint64_t retstack_pop(struct retstack *stack)
{
	const uint64_t ip = stack->ips[stack->top];

	stack->top = (stack->top - 1) % RETSTACK_SIZE;
	stack->depth--;
	return ip;
}
