/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Stack tree
 *
 * What was spent where: a node for each function below each sequence of callers, with the costs of
 * all its calls there. All threads of one name have a root in common, or each thread has its own.
 * Flame graphs and profiles are made of it.
 *
 * A function that was open before a stack's first instruction, or before a gap, is found when one
 * returns to it, and then all that came since lies below it. So what follows a start or a gap is a
 * part of its own, whose root has no function. If an outer function is found, that root becomes the
 * function's node, and gets a root above it. Parts that have ended are joined later: when the nodes
 * are twice as many as the last time, a new tree is made of them.
 *
 * The memory depends on how many different stacks there are, and not on the number of calls. Beyond
 * STACKTREE_NODES_MAX nodes, calls count as part of the function that made them.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "ptd/calls.h"
#include "util/map.h"
#include "util/vec.h"

#define STACKTREE_NODES_MAX (1u << 20)

#define STACKTREE_NONE UINT32_MAX

struct stacktree_node {
	uint32_t parent; /* STACKTREE_NONE: it is a root */
	/* Its id; of a root, after stacktree_finish(), the index of its name. STACKTREE_NONE: it is
	 * the root of a part that goes on. */
	uint32_t function;
	uint64_t n_calls; /* that were left */
	uint64_t t_self;  /* of these, as struct ptd_call has it */
	uint64_t n_insns_self;
};

struct stacktree_stack {
	VEC(uint32_t) frames; /* the node of each open function, the innermost last */
	uint32_t root;        /* of the part; STACKTREE_NONE: there is none */
	const char *name;     /* of the thread that was on it last; borrowed */
	uint32_t pid, tid;    /* of that thread */
};

/* A part that has ended. */
struct stacktree_part {
	uint32_t root;
	uint32_t name; /* index */
};

struct stacktree_name {
	const char *text;  /* of a thread; borrowed */
	uint32_t pid, tid; /* of the first thread that has it */
	uint32_t root;     /* STACKTREE_NONE: it has none yet */
};

struct stacktree {
	bool by_thread; /* threads with equal names have roots of their own; the caller sets it */

	VEC(struct stacktree_node) nodes;
	struct map children;                /* nodes by parent and function */
	size_t n_joined;                    /* nodes when parts were joined last */
	VEC(struct stacktree_stack) stacks; /* by their numbers */

	VEC(struct stacktree_part) parts;
	VEC(struct stacktree_name) names;
	struct map names_by_hash;

	uint64_t n_left_out; /* calls that have no node */

	char omission[160];
};

void stacktree_deinit(struct stacktree *tree);

/* Count the call. Return: 0 or -ENOMEM. */
_must_check_ int stacktree_call(struct stacktree *tree, const struct ptd_call_thread *thread,
				const struct ptd_call *call);

/*
 * All functions are left: make one tree. Each node stands behind its parent.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int stacktree_finish(struct stacktree *tree);

/* --- as a sink -------------------------------------------------------------------------------- */

/* Operations of sinks of which the tree is the state, or its first member. */
int stacktree_calls(void *state, const struct ptd_call_batch *calls);
const char *stacktree_omission(void *state);
