/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Calls of inlined functions
 *
 * Puts the functions that a compiler inlined between the calls that callthread.c finds. An inlined
 * function has no call and no return: what is known of it are the addresses of its code, which lies
 * between that of the function around it. inlined.c has the rules.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/calls/blockfacts.h"
#include "decoder/calls/callstack.h"
#include "ptd/decode.h"
#include "util/map.h"
#include "util/vec.h"

/* A place where a function was inlined. */
struct inlined_place {
	const struct ptd_inlined *shown; /* the decoder's */
	const struct ptd_object *object; /* borrowed; NULL: it was not entered yet */
	uint32_t function;
	uint32_t outer; /* index of the place that it is in; INLINED_NONE: in none */
	/* Its entry as linked: the one that the compiler noted; else the instruction at which
	 * control came into it first. */
	uint64_t entry;
	bool has_entry;
};

#define INLINED_NONE UINT32_MAX
/* Not the place of any instruction: where control is, is to be looked at; or nothing is known of
 * the code; or there are several places, or the entry of one. */
#define INLINED_ANY     (UINT32_MAX - 1)
#define INLINED_UNKNOWN (UINT32_MAX - 2)
#define INLINED_SEVERAL (UINT32_MAX - 3)

/* Instructions of a block that belong to the same place: up to the next of its parts. */
struct inlined_part {
	uint32_t place; /* INLINED_NONE: nothing is inlined there */
	uint16_t first;
	bool is_known; /* of the function around it, it is known what is inlined into it */
	bool is_entry; /* the first one enters the place, or one around it */
};

struct inlined_block {
	uint32_t first, n; /* parts */
};

/* A block that ran lately. Most runs need no more than this. */
struct inlined_recent {
	const struct ptd_block *block;
	uint32_t place; /* of all its instructions */
};

/* Where in the stream of a thread something happens. */
struct inlined_moment {
	uint64_t t, n; /* n: instructions of the thread */
	uint64_t ip;   /* of the next one, and its address as linked */
	uint64_t address;
	uint32_t run;
};

/* An inlined function that is open. */
struct inlined_frame {
	uint32_t place;
	int32_t called; /* depth of the function that was called, and in which it is */
	bool ambiguous;
	uint64_t t, n; /* when it was entered, in time and in the stack's instructions */
	uint64_t t_inner, n_inner; /* of that spent in functions that it called */
};

/* What the layer counted otherwise of a function that was called. */
struct inlined_cost {
	int32_t called;            /* its depth */
	uint64_t t_inner, n_inner; /* spent in what was inlined into it */
	uint64_t t_moved, n_moved; /* in what was called from there: as if from itself */
};

struct inlined_stack {
	VEC(struct inlined_frame) frames;
	VEC(struct inlined_cost) costs; /* of some functions that are open, the innermost last */
	size_t base;         /* of the frames, those that are not in the innermost function */
	uint32_t n_called;   /* functions that were called, and are open */
	int32_t depth;       /* of the innermost of them, as the layer counts */
	bool ambiguous;      /* what is open there */
	bool is_open_before; /* it was entered before what is known, and executed nothing yet */

	uint64_t bias;    /* its instructions are the thread's and this */
	uint64_t n_saved; /* its instructions, when the thread left it */

	/* Of the innermost frames, how many may have been left, and when. */
	size_t n_doubtful;
	struct inlined_moment doubtful;

	uint32_t current; /* the place where control is, or INLINED_ANY */
	/* It came there away from the entry, and may only have passed by, since then. */
	bool is_passing;
	struct inlined_moment passing;
	const struct ptd_object *object; /* that it is in then; borrowed */
};

struct inlined_thread {
	uint32_t stack; /* that it is on */
	bool has_stack;
	uint64_t n, slice;
};

struct inliner {
	struct ptd_decoder *decoder; /* borrowed, as is @functions */
	struct functions *functions;
	struct ptd_calls_stats *stats; /* likewise */
	VEC(struct inlined_place) places;
	struct map by_shown;              /* the decoder's place → its index */
	VEC(struct inlined_block) blocks; /* by block id */
	VEC(struct inlined_part) parts;
	struct inlined_recent recent[1 << BLOCKFACTS_RECENT_BITS]; /* by blockfacts_index() */
	VEC(struct inlined_stack) stacks;                          /* by the number of the stack */
	VEC(struct inlined_thread) threads;                        /* by the thread's id */
	VEC(struct ptd_call) calls;                                /* that are to be given out */

	/* How much of the batch was taken. */
	size_t run, insn, mark;
	bool is_new_batch;
};

void inliner_deinit(struct inliner *inliner);

/* A batch comes. */
void inliner_begin(struct inliner *inliner);

/*
 * Add the @n_calls calls that were found in the runs of @batch of @thread up to before @end_run,
 * and those of inlined functions between them, to @inliner->calls. @batch is NULL when the thread
 * ends.
 *
 * Return: 0; 1: nothing was added, since the calls are as they were found; or -ENOMEM.
 */
_must_check_ int inliner_take(struct inliner *inliner, const struct ptd_call_thread *thread,
			      const struct ptd_batch *batch, size_t end_run,
			      const struct ptd_call *calls, size_t n_calls);
