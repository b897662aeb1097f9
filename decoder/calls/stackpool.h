/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Stack pool
 *
 * The stacks of a process on which no thread runs: fibers and goroutines that wait. A stack is
 * parked with the address at which it goes on. Which stack goes on is not in PT. If several are
 * parked with the same address, the one that was parked first is taken, and the others are kept
 * with it as alike. When a return does not match the chosen stack but matches one alike, that one
 * was the right choice: the functions left since belong to it, the two change places, and the wrong
 * one is parked again. Stacks alike to those alike are tried last.
 *
 * Where a goroutine's stack grows, morestack copies it: it runs on the goroutine's behalf, and
 * resumes it directly, without the scheduler. The function that recovers from a panic does the
 * same, but resumes the goroutine in another function that is open on it. A switch between
 * coroutines resumes another goroutine in this way, and a scheduler resumes any.
 *
 * Slices come in the order in which they start, so a goroutine may be resumed in one thread before
 * its parking is seen in another. Its open functions are then unknown, and the stack is marked as
 * resumed early: calls inferred on it are ambiguous, and a later park that predates the resume is
 * ignored. If another stack was taken for it, and no stack alike is the right one, that one is
 * parked again until the function that is open on it returns. For the same reason a resumed stack
 * is a guess where several threads have goroutines, even if no other stack is parked: its open
 * functions are left as ambiguous ones.
 *
 * Functions that change stacks are known by their names, or by what they do.
 */

#include <stddef.h>
#include <stdint.h>

#include "decoder/calls/callstack.h"
#include "util/vec.h"

struct call_world;
struct callthread;
struct step;

/* What is kept of stacks that are alike, for each of them. If there is more, the outermost is
 * forgotten. */
#define STACKPOOL_ALIKE_MAX 64

struct parked {
	uint64_t ip; /* at which it goes on */
	struct callstack *stack;
};

/* How many functions are kept that went elsewhere than behind their call. */
#define STACKPOOL_PASSED_MAX 16

/* How many stacks that were resumed early are kept, and how many of their returns. */
#define STACKPOOL_EARLY_MAX         64
#define STACKPOOL_EARLY_RETURNS_MAX 4

struct early {
	uint64_t ip, t;                                /* where and when it went on */
	uint64_t returns[STACKPOOL_EARLY_RETURNS_MAX]; /* of functions that were open, to these */
	size_t n_returns;
	bool is_parked; /* its parking was seen since */
};

struct stackpool {
	VEC(struct parked) parked; /* the one that was parked first is first */
	VEC(struct early) early;   /* that of number N is at (N - 1) % STACKPOOL_EARLY_MAX */
	uint64_t n_early;          /* numbers given so far */
	uint32_t scheduler;        /* id of the first thread with goroutines, and 1; 0: none */
	bool has_schedulers;       /* another one has some, too */
	struct {
		uint64_t ret; /* behind its call */
		uint32_t function;
	} passed[STACKPOOL_PASSED_MAX];
	uint64_t n_passed; /* so far; the last ones are kept */
};

void stackpool_deinit(struct stackpool *pool);

/* Make an empty stack. Return: it; NULL if there is no memory. */
struct callstack *stackpool_new_stack(struct call_world *world);

/* @stack is empty, and is not used any more: another one gets its number. */
void stackpool_drop_stack(struct call_world *world, struct callstack *stack);

/* --- rules ------------------------------------------------------------------------------------ */

/*
 * The innermost function is one that goes on on another stack (FRAME_SWAP, FRAME_SET, FRAME_GO),
 * and control leaves it.
 */
void stackpool_leave(struct step *s);

/* The innermost function, by a return or a jump, passes its caller over. */
void stackpool_pass(struct step *s);

/*
 * Control arrives where nothing that is open returns to. If that is behind an earlier call of the
 * innermost function, which then passed its caller over, that caller has waited on another stack,
 * and the function is one that changes stacks: it is known as such from now on, and control leaves
 * it.
 *
 * Return: whether it was so.
 */
bool stackpool_learn(struct step *s);

/* The innermost function is FRAME_PARK or FRAME_GROW, and calls what is to run on the scheduler's
 * stack. */
void stackpool_park(struct step *s);

/* The innermost frame, perhaps one of several alike, returns as it should: so must those. */
void stackpool_compare(struct step *s);

/*
 * The innermost frame does not return where it should. If one alike does, take that.
 *
 * Return: whether there was one.
 */
bool stackpool_correct(struct step *s);

/*
 * The innermost frame was open when this stack went on, and does not return where it should. If a
 * goroutine's stack was taken that is not the right one, the thread leaves it for one about which
 * nothing is known.
 *
 * Return: whether it is so. The function has returned.
 */
bool stackpool_disown(struct step *s);

/*
 * The lowest function that is known on a stack that went on early returns. A stack that was taken
 * for another one may wait for that.
 *
 * Return: whether one does: the thread is on that, and the function has returned.
 */
bool stackpool_rejoin(struct step *s);

/* The lowest known function returned to a function that was not known to be open. */
void stackpool_note_return(struct step *s);

/* The thread's scheduler does not go on on its stack. Nothing is open on that unless the thread is
 * on it: then it stays, as a stack like any other. */
void stackpool_end_home(struct callthread *thread, struct call_world *world);

/* End the stacks on which the thread @thread was the last. */
void stackpool_end(struct stackpool *pool, struct call_world *world, uint32_t thread,
		   const struct call_place *place);
