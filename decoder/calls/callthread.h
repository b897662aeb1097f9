/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Calls of a thread
 *
 * Follows what one thread executes, and keeps its stack. callthread.c has the table of rules.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/calls/blockfacts.h"
#include "decoder/calls/callstack.h"
#include "decoder/calls/functions.h"
#include "ptd/calls.h"

struct stackpool;

/* What all threads share. */
struct call_world {
	struct functions functions;
	struct blockfacts_table blocks;
	struct call_list list;
	struct callstack *stacks; /* all that there are; owned */
	/* Those that have ended, the one that did so last at the end. */
	struct callstack *unused, *last_unused;
	uint32_t n_stacks;   /* numbers given to stacks so far */
	uint64_t n_parkings; /* likewise, to parkings */
};

/* What comes before the next instruction of a thread. */
enum call_after {
	CALL_AFTER_NOTHING, /* the first one, or a gap */
	CALL_AFTER_INSN,    /* the last one */
	CALL_AFTER_ASYNC,   /* it was interrupted */
	CALL_AFTER_OFF,     /* it left for untraced code */
	CALL_AFTER_ABORT,   /* its transaction was aborted */
};

struct callthread {
	struct ptd_call_thread shown; /* the first field */
	struct callstack *stack;      /* that it is on */
	struct callstack *home;       /* of its scheduler, never parked; may be NULL */
	struct stackpool *pool;       /* of its process; borrowed */
	uint64_t parking;             /* number of the last one, for its scheduler's stack; or 0 */

	/* Of the threads that have not ended, those that ran just before it and after it. */
	struct callthread *older, *newer;

	uint8_t after;     /* enum call_after */
	uint32_t code;     /* of the last instruction; CODE_PENDING: look at the next one */
	uint64_t async_ip; /* where it was interrupted */
	uint64_t slice;    /* id of its last slice */
	bool is_new_slice; /* nothing of it has run yet */
	bool is_in_tail;   /* a logged call left a function by a jump; the next one says where to */
	struct ptd_run last;

	size_t n_at_end;      /* frames that were left when it ended; they are still there */
	uint64_t search_room; /* how many frames may still be looked at */
};

#define CODE_PENDING (UINT32_MAX - 1)

/* Free what belongs to no thread. */
void call_world_deinit(struct call_world *world);

/* Return: 0 or -ENOMEM. */
_must_check_ int callthread_init(struct callthread *thread, struct call_world *world,
				 struct stackpool *pool, const struct ptd_slice *slice);

/* How much of a batch was taken: runs, or calls of a log, and marks. */
struct call_position {
	const struct ptd_logged *logged; /* whose batch it is; NULL: it has runs; borrowed */
	size_t run, mark;
};

/* A batch of this thread comes. */
void callthread_begin(struct callthread *thread, const struct ptd_batch *batch);

/*
 * Take runs and marks of @batch from @at on, which then says how far, and add their calls to the
 * world's list: until all is taken, or the list has CALLTHREAD_CALLS.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int callthread_take(struct callthread *thread, struct call_world *world,
				 const struct ptd_batch *batch, struct call_position *at);

/* How many calls lie in the CPU's caches until they are looked at. */
#define CALLTHREAD_CALLS 128

/* Return: the number of runs, or of calls of a log. */
static inline size_t callthread_n(const struct ptd_batch *batch, const struct call_position *at)
{
	return at->logged ? at->logged->n_calls : batch->n_runs;
}

static inline bool callthread_has_taken(const struct ptd_batch *batch,
					const struct call_position *at)
{
	return at->run == callthread_n(batch, at) && at->mark == batch->n_marks;
}

/*
 * Leave all that is open, because the thread has ended: on its stack, and on those that it was the
 * last to be on.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int callthread_end(struct callthread *thread, struct call_world *world);

/* Forget the stack of a thread that has ended. */
void callthread_forget(struct callthread *thread, struct call_world *world);
