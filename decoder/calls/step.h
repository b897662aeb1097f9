/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Step
 *
 * One arrival of a thread at an instruction that may be of another function than the one before:
 * what is known of it, and what can follow from it. callthread.c has the rules.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/calls/callthread.h"

#define STEP_NONE SIZE_MAX

#define SYSCALL_SIZE 2 /* bytes of syscall, sysenter and int 0x80 */

/*
 * Frames that may be looked at in vain, in all: each call and each batch adds some. Without a bound
 * a damaged trace could make each of its returns look at all frames.
 */
#define STEP_SEARCH_ROOM_MAX      (UINT64_C(1) << 20)
#define STEP_SEARCH_ROOM_PER_CALL 16

struct step {
	struct callthread *thread;
	struct call_world *world;
	const struct ptd_batch *batch;
	const struct ptd_run *last; /* the one before it; meaningless if there was none */
	const struct ptd_run *run;
	size_t insn; /* index in the block */
	uint64_t ip;
	uint32_t code; /* see functions.h */
	uint8_t role;  /* enum function_role, of code with a symbol */
	bool begins;   /* likewise: it is at the beginning of its function */
	struct call_place place;

	/* An interruption ended: arrive again, from the run that it had come after. */
	bool again;
	struct ptd_run before;
};

/* A function is entered: more frames may be looked at. */
static inline void step_add_search_room(struct callthread *thread)
{
	if (thread->search_room < STEP_SEARCH_ROOM_MAX)
		thread->search_room += STEP_SEARCH_ROOM_PER_CALL;
}

/* Keep an error, if @r is one. */
void step_fail(struct step *s, int r);

/* --- the last instruction --------------------------------------------------------------------- */

static inline size_t step_last_index(const struct ptd_run *run)
{
	return (size_t)run->first + run->n - 1;
}

static inline const struct ptd_insn *step_last_insn(const struct step *s)
{
	return &s->last->block->insns[step_last_index(s->last)];
}

/* Return: what the last instruction does to the flow of control. */
static inline uint8_t step_last_class(const struct step *s)
{
	return step_last_index(s->last) + 1 == s->last->block->n_insns ? step_last_insn(s)->iclass
								       : PTD_INSN_OTHER;
}

static inline uint64_t step_last_ip(const struct step *s)
{
	return s->last->base + step_last_insn(s)->offset;
}

/* Return: the address behind the last instruction. */
static inline uint64_t step_next_ip(const struct step *s)
{
	return step_last_ip(s) + step_last_insn(s)->size;
}

/* Return: whether control can have come here from the last instruction. Of returns, indirect
 * branches and what the kernel does, the rules find out. */
bool step_continues(const struct step *s);

/* --- where control arrives -------------------------------------------------------------------- */

static inline bool step_is_named(const struct step *s)
{
	return !(s->code & CODE_UNNAMED);
}

/* A function jumps to where control arrives. If that is a part of none yet, it is of this one. */
void step_join(struct step *s);

/* It is in the middle of a block, and has the code @code. */
void step_set_code(struct step *s, uint32_t code);

/* Return: the innermost frame. */
static inline struct frame *step_top(const struct step *s)
{
	return callstack_top(s->thread->stack);
}

/* Return: the function that begins, or is, there. */
uint32_t step_begin(struct step *s);

/* Return: whether that is at its beginning. */
bool step_is_beginning(const struct step *s);

/*
 * Return: whether the last instruction, and that where control arrives, are of code without a
 *         symbol in the same object, and a jump led to the last one from another function.
 */
bool step_is_after_silent_jump(struct step *s);

/* Return: whether it is that of @frame. */
bool step_is_inside(struct step *s, const struct frame *frame);

/* Return: whether it has this role. */
static inline bool step_has_role(const struct step *s, enum function_role role)
{
	return s->role == role;
}

/*
 * Return: whether it is a thunk that stands for an indirect branch. In the kernel, such a thunk may
 *         have no symbol: that of a module, or one to which retpolines were patched.
 */
bool step_is_thunk(const struct step *s);

/* Return: the kind of frame for it (enum frame_kind). */
uint8_t step_kind(const struct step *s);

/* --- which frame ------------------------------------------------------------------------------ */

/* Each returns the index of the innermost frame for which it is so, or STEP_NONE. */

/* It returns to where control arrives. */
size_t step_find_returning(struct step *s, const struct frame *frames, size_t n);

/* It is below frame @n, and control arrives inside its function. */
size_t step_find_open(struct step *s, size_t n);

/* It is below frame @n and of code without a symbol, as is that where control arrives, which a
 * runtime made: such code jumps to any other without that a function is entered. */
size_t step_find_unnamed(struct step *s, size_t n);

/* Control arrives in a function that was left by a jump, in frame @n or inside that. Return: the
 * index of its entry in the stack's list of them. */
size_t step_find_jumped(struct step *s, size_t n);

/* It is of a handler that interrupted the thread where control arrives. */
size_t step_find_interrupted(struct step *s);

/* It has installed the handler at which control arrives, number @ret_trap. */
size_t step_find_trap(struct step *s, size_t *ret_trap);

/* It is of the kernel's entry. */
size_t step_find_kernel(struct step *s);

/* --- what happens ----------------------------------------------------------------------------- */

/* Begin where nothing is known of what is open. */
void step_start(struct step *s);

/* A gap that has no mark. */
void step_restart(struct step *s);

void step_enter(struct step *s, const struct frame *frame);
void step_leave(struct step *s, enum ptd_call_how how);
void step_leave_to(struct step *s, size_t n, enum ptd_call_how how);

/* The innermost function is left for another one, which begins here. */
void step_tail(struct step *s);

/* The innermost frame is a stub's, which leads here. */
void step_name_stub(struct step *s);

/* All is left, and control arrives in a function that was open before it. */
void step_enter_below(struct step *s, bool was_resumed);

/* The innermost frame returns to where control arrives. */
void step_return(struct step *s);

/* Go on inside the function of frame @i. Several activations of it may be the one. */
void step_unwind_to(struct step *s, size_t i);

/* Go on in the handler number @trap, that frame @i has installed. */
void step_catch(struct step *s, size_t i, size_t trap);

/*
 * Nothing that is known to be open fits: the function where control arrives was open before all
 * that is known. Such a thing is believed once of a stack; after that it is a gap.
 */
void step_lose(struct step *s);

/*
 * Code without a symbol makes the call that returns to @ret. Jumps between such code are silent, so
 * that a function may have been left by one: it was, if the same call entered it, and the code that
 * calls was not entered since.
 */
void step_drop_abandoned(struct step *s, uint64_t ret);

/* The same of a call within a function, which returns to @ret: its code dropped the address. */
void step_drop_locals(struct step *s, uint64_t ret);
