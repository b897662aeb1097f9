/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Branch counts
 *
 * How often each conditional branch of a stream was taken, and where each indirect jump or call led
 * to. A branch is named by its object and its address as linked, so that the counts of all
 * processes that execute it are one.
 *
 * Which way a branch went follows from the run behind it. The way of the last branch before a gap,
 * a system call or a switch of threads is not known, unless the mark there says where the thread
 * was interrupted.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "ptd/record.h"
#include "util/vec.h"

/* A place in the code. */
struct branch_place {
	const struct ptd_object *object; /* borrowed */
	uint64_t address;                /* as linked */
	uint32_t symbol;
};

struct branch_target {
	struct branch_place place;
	uint64_t n;
	uint64_t at; /* as branch.taken_at */
};

struct branch {
	struct branch_place place;
	uint8_t iclass;       /* enum ptd_insn_class */
	uint64_t n;           /* how often it was executed */
	uint64_t n_taken;     /* of a conditional branch */
	uint64_t n_not_taken; /* likewise */
	uint64_t n_unknown;   /* the way it went is not known */
	uint64_t n_others;    /* it went to more targets than are kept */
	uint64_t taken_at,
	    not_taken_at;          /* how many runs were before the first time that it went so */
	struct branch_place taken; /* of a conditional branch: where it leads to */
	VEC(struct branch_target) targets; /* of an indirect one */
	size_t last;                       /* its target that was used last */
};

struct branchcount {
	VEC(struct branch) rows; /* while it counts, by block id: n is 0 if there is none */
	uint64_t n_runs;         /* of the stream so far */
	uint64_t slice;          /* of the last run */
	struct ptd_run pending;  /* it ended with a branch whose way is not known yet */
	bool is_pending;
};

/* Count what @batch has, the next one of the stream. Return: 0 or -ENOMEM. */
_must_check_ int branchcount_batch(struct branchcount *count, const struct ptd_batch *batch);

/* The stream is over: make a row of each branch, by place. Return: 0 or -ENOMEM. */
_must_check_ int branchcount_end(struct branchcount *count);
void branchcount_deinit(struct branchcount *count);

/* Compare two places, by object and address, as qsort() has it. */
int branch_place_compare(const struct branch_place *a, const struct branch_place *b);
