/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Check of calls
 *
 * Checks what must hold of the call stream of any input: on each stack the calls nest, depths and
 * sums fit, and all that was entered is left.
 */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/base.h"
#include "ptd/calls.h"
#include "util/vec.h"

struct callcheck_frame {
	const struct ptd_function *function;
	int32_t depth;
};

struct callcheck_stack {
	VEC(struct callcheck_frame) frames;
};

struct callcheck {
	FILE *faults; /* borrowed */
	uint64_t n_faults;
	uint64_t n_calls;
	VEC(struct callcheck_stack) stacks; /* by number */
	VEC(uint32_t) on;                   /* by the thread's id: the stack it is on, + 1 */
	VEC(uint64_t) executed;             /* by the thread's id: instructions, so far */
	uint64_t n_insns;                   /* of all threads */
	size_t n_logged; /* calls of the batch, if it is of a log: the caller sets it */
};

void callcheck_deinit(struct callcheck *check);

/* Check the next calls of the stream. Return: 0 or -ENOMEM. */
_must_check_ int callcheck_calls(struct callcheck *check, const struct ptd_call_batch *batch);

/* Check that all is left. */
void callcheck_end(struct callcheck *check);
