/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Region
 *
 * The part of a stream that is one execution of a function: the runs of one thread from the first
 * instruction of the function to its end. An execution is a call while no other call of the
 * function is open on the stack; it has a number, in the order in which they began, from 1.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "ptd/calls.h"
#include "util/vec.h"

struct region {
	const char *function; /* borrowed */
	uint64_t number;
	struct ptd_calls *calls;
	uint64_t n_begun; /* executions so far */
	bool is_inside, is_over;
	uint32_t stack;    /* on which the execution is */
	uint32_t pid, tid; /* of the thread that executes it */
	VEC(struct region_call {
		bool is_open;
		int32_t depth;
	})
	open; /* by stack: the outermost call of the function */
};

/* The runs of a batch that are in the region: from @from up to but not including @to. */
struct region_part {
	size_t from, to;
	bool begins; /* the region does, so marks before the first run are not in it */
};

/* Begin at the start of a stream. Return: 0 or -ENOMEM. */
_must_check_ int region_init(struct region *region, const struct ptd_info *info,
			     const char *function, uint64_t number);
void region_deinit(struct region *region);

/* Take the next batch. Return: 0 and the part of it that is in the region; or -ENOMEM. */
_must_check_ int region_batch(struct region *region, const struct ptd_batch *batch,
			      struct region_part *ret_part);

/* Return: whether the region has ended, and no further batch is of it. */
static inline bool region_is_over(const struct region *region)
{
	return region->is_over;
}
