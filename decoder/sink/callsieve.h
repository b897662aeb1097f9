/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Call sieve
 *
 * Leaves calls out of a call stream that took less than a time, or that are deeper than a number,
 * so that an export of it fits the viewer. What is left out is a part of its caller: its time and
 * instructions count as the caller's own. What remains nests as before.
 *
 * How long a call took is known when it is left. So the functions that are open on a stack, from
 * the first one on of which nothing was given on, are held back until one of them, or of those that
 * they called, has taken long enough. Then all that contain it have, and are entered late, with
 * the times at which they were. A thread that goes on on another stack enters those of the old one
 * first, since what is given on of a thread does not go back in time.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "ptd/calls.h"
#include "util/vec.h"

/* A function that is open. */
struct callsieve_frame {
	struct ptd_call enter;
	bool is_given;                 /* on; else it is held back */
	uint64_t t_inner, insns_inner; /* of what was left out in it */
};

struct callsieve_stack {
	VEC(struct callsieve_frame) frames; /* outermost first */
	size_t n_done;                      /* outermost ones that are given, or too deep */
};

struct callsieve {
	uint64_t min_duration; /* what took less is left out, in units of the input's clock */
	int64_t max_depth;     /* what is deeper is left out; INT64_MAX: nothing is */

	VEC(struct callsieve_stack) stacks; /* by their numbers */
	VEC(uint32_t) on;                   /* by id of a thread: the stack that it is on, plus 1 */
	VEC(struct ptd_call) given;
	uint64_t n_left_out;
	uint64_t n_by_duration[64]; /* calls that took 2^i and more, less than 2^(i+1) */
};

void callsieve_deinit(struct callsieve *sieve);

/* Return: whether anything may be left out. */
static inline bool callsieve_is_on(const struct callsieve *sieve)
{
	return sieve->min_duration > 0 || sieve->max_depth < INT64_MAX;
}

/*
 * Take the next calls. @ret_calls are those that remain; they belong to the sieve until the next
 * call.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int callsieve_take(struct callsieve *sieve, const struct ptd_call_batch *calls,
				struct ptd_call_batch *ret_calls);

/* Count how long the calls took that are left in @calls. */
void callsieve_count(struct callsieve *sieve, const struct ptd_call_batch *calls);

/* Return: the least power of two such that no more than one of @n calls that were counted took so
 * long, or longer. */
uint64_t callsieve_duration_of(const struct callsieve *sieve, uint64_t n);
