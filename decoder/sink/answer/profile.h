/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Profile
 *
 * What each function cost, in time and in instructions. Its memory depends on the number of
 * functions and on how deep the stacks are, and not on the number of calls.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/sink/answer/histogram.h"
#include "decoder/sink/openstacks.h"
#include "ptd/calls.h"
#include "util/vec.h"

/* A cost: of time in the unit of the stream's clock, or of instructions. */
struct cost {
	uint64_t self;          /* in the function itself */
	uint64_t total;         /* with what it called; a function that calls itself counts once */
	struct histogram whole; /* of each call that is whole, with what that called */
};

struct profile_function {
	const struct ptd_function *function; /* borrowed; NULL: it was not left */
	uint64_t n_calls;
	/*
	 * How many of these calls are not whole: their beginning or end is not in the trace, or
	 * is ambiguous.
	 */
	uint64_t n_partial;
	uint32_t n_open; /* on the current stack */
	struct cost t, n_insns;
};

struct profile {
	uint64_t n_calls, n_partial;
	uint64_t t_self, n_insns;               /* sums of all functions */
	VEC(struct profile_function) functions; /* by id of the function */
	struct open_stacks stacks;
	uint32_t stack; /* on which the last call was */
};

void profile_deinit(struct profile *profile);

/* Count the calls of a batch. Return: 0 or -ENOMEM. */
_must_check_ int profile_add(struct profile *profile, const struct ptd_call_batch *batch);

/* Functions that were called; borrowed from a profile. */
struct profile_list {
	const struct profile_function **items;
	size_t n, n_capacity;
};

/* List the functions. The caller frees @ret_list with vec_deinit(). Return: 0 or -ENOMEM. */
_must_check_ int profile_list(const struct profile *profile, struct profile_list *ret_list);

/* Sort them by their own cost, in time or in instructions, the largest first. */
void profile_sort(struct profile_list *list, bool by_time);

/* Return: whether what was entered so goes on, and is the call that was counted before: behind a
 * gap, behind a jump that turned out to be a call, or behind other code of the function that it was
 * inlined into. */
static inline bool profile_goes_on(uint8_t how)
{
	return how == PTD_CALL_BY_RESUMPTION || how == PTD_CALL_BY_REOPENING ||
	       how == PTD_CALL_BY_REENTRY;
}

/*
 * Return: whether the call of @frame, which ends by @leave, was seen from its beginning to its end,
 *         so that its duration is known.
 */
static inline bool profile_is_whole(const struct open_frame *frame, const struct ptd_call *leave)
{
	const unsigned int not_entered =
	    1u << PTD_CALL_BY_INFERENCE | 1u << PTD_CALL_BY_RESUMPTION |
	    1u << PTD_CALL_BY_REOPENING | 1u << PTD_CALL_BY_START | 1u << PTD_CALL_BY_REENTRY;
	const unsigned int not_left = 1u << PTD_CALL_BY_GAP | 1u << PTD_CALL_BY_END;

	return !frame->ambiguous && !leave->ambiguous && !(not_entered >> frame->how & 1) &&
	       !(not_left >> leave->how & 1);
}
