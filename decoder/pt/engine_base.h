/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Engine base
 *
 * What both engines have in common: the walk over the packets, the code of the space that was set,
 * the time, the account of bytes, the state that packets repeat, and guards against code that does
 * not end. engine.c drives an engine through its ops, and finds where it can go on behind an error.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/image/view.h"
#include "decoder/pt/engine.h"
#include "decoder/pt/peek.h"
#include "decoder/pt/walk.h"
#include "util/vec.h"

/*
 * Code that executes more instructions than this without using up a packet is given up: they take
 * more bytes than any program has in a row. (Code that comes back to where it was is given up at
 * once.)
 */
#define ENGINE_SPIN_MAX (UINT64_C(1) << 24)

/*
 * Finds out whether direct branches that no packet lies between lead to where one has led before:
 * then the code goes round for ever. Only branches whose number is a power of two are remembered,
 * so that a circle is found after a few rounds, and a chain is none however long it is. {} at the
 * start.
 */
struct engine_circle {
	uint64_t ip; /* where one of the last branches led */
	uint64_t n;  /* how many there were */
};

/* Another branch leads to @target. Return: whether the code goes round. */
_must_check_ static inline bool engine_circle_closes(struct engine_circle *circle, uint64_t target)
{
	if (circle->n > 0 && target == circle->ip)
		return true;
	if ((circle->n & (circle->n - 1)) == 0)
		circle->ip = target;
	circle->n++;
	return false;
}

/* The runs that a step of an engine fills in. */
struct runlist {
	struct ptd_run *runs; /* borrowed */
	size_t n, n_max;
	uint64_t n_insns; /* of all runs */
};

struct engine_ops {
	const char *name;
	size_t size; /* of the engine, whose first member is a struct engine */

	/* Init returns 0 or -ENOMEM; also then it is deinitialized. May be NULL. */
	int (*init)(struct engine *engine);
	void (*deinit)(struct engine *engine);

	/* Go on until something stops it, or engine->error is set. */
	void (*go)(struct engine *engine, struct runlist *out, struct engine_step *ret_step);

	/* Go on to the event that comes next, if nothing lies before it. May be NULL. */
	void (*look_ahead)(struct engine *engine);

	/* Return: the offset up to which packets have been used up. */
	uint64_t (*used)(const struct engine *engine);

	/* There is an error at @offset: let the walk stand there, and forget the code before it. */
	void (*forget)(struct engine *engine, uint64_t offset);

	/* Go on at @point, or at the PSB at @offset, which the walk has found; @has_ip: packets
	 * are on there. Return: whether that can be done. */
	bool (*go_on_at)(struct engine *engine, const struct walk_point *point);
	bool (*sync_at)(struct engine *engine, uint64_t offset, bool has_ip);

	/* As engine_get_joint(). NULL: it cannot join. */
	void (*get_joint)(const struct engine *engine, struct engine_joint *ret_joint);
};

/* First member of every engine. */
struct engine {
	const struct engine_ops *ops;
	struct engine_config config;
	uint32_t errata;        /* of the CPU */
	int error;              /* negative errno: there is no memory, or the span cannot be read */
	struct view *view;      /* NULL: nothing is mapped */
	VEC(uint32_t) new_runs; /* as engine_new_runs() */
	uint8_t mode;           /* of the code: 16, 32 or 64 */

	bool started, ended;
	bool ask;       /* the next step is ENGINE_ASK */
	uint64_t t;     /* TSC, as far as it is known */
	uint64_t limit; /* before that time the caller need not be asked */

	/* Of the stretch of code (peek.h): */
	struct when_bounds bounds;
	uint64_t bounds_t; /* they hold while this is @t */
	bool is_user;      /* it begins below the kernel's half of addresses */

	/* What was last reported of the state that each PSB+ repeats. */
	struct engine_news {
		bool in_transaction;
		uint64_t cbr, cr3, non_root, vmcs;
	} news;

	uint64_t from;    /* offset from which bytes are not accounted for */
	uint64_t decoded; /* bytes */
	uint64_t pause;   /* offset to stop at */
	bool passed;      /* packets behind it report what follows */

	uint64_t paid;               /* offset up to which packets were paid with instructions */
	uint64_t spin_insns;         /* since a packet was taken */
	struct engine_circle circle; /* since a packet decided where code goes on */

	/* Of the last gap where an object was not to be had: the next PSB, and why. {}: none. */
	struct engine_hidden {
		uint64_t psb;
		enum ptd_gap_reason reason;
	} hidden;

	uint64_t interrupted; /* where user code of the thread was interrupted last; 0: not known */

	/* Behind the others: with the walk's queues between the fields that engine flow uses for
	 * each segment, it took 5 % longer. */
	struct walk walk; /* over the span */
	struct when when;
};

/* Fill in @ret_step; what belongs to @stop alone is the caller's. */
static inline void engine_stop(const struct engine *engine, enum engine_stop stop, uint64_t ip,
			       struct engine_step *ret_step)
{
	ret_step->stop = stop;
	ret_step->t = engine->t;
	ret_step->ip = ip;
}

/* Stop because what packets behind the offset to pause at report begins with run @n_before. */
void engine_pass(struct engine *engine, size_t n_before, struct engine_step *ret_step);

/* Run number @i of the step is of @block. Return: whether that was not shown, which is noted. */
bool engine_note_run(struct engine *engine, const struct ptd_block *block, size_t i);

/*
 * Report an event whose place in the code was reached: one of any kind but WALK_ENABLED, WALK_JOIN
 * and WALK_NOTHING. What a PSB+ repeats is reported only if it is news.
 *
 * Return: whether there is something that the caller must see: @ret_step is filled in then.
 */
_must_check_ bool engine_report(struct engine *engine, const struct walk_event *event,
				struct engine_step *ret_step);

/* A stretch of code begins. */
static inline void engine_begin_stretch(struct engine *engine, struct when_bounds bounds,
					bool is_user)
{
	engine->bounds = bounds;
	engine->bounds_t = engine->t;
	engine->is_user = is_user;
}

/* Return: the offset up to which packets have been used up, but not before engine->from. */
static inline uint64_t engine_used(const struct engine *engine)
{
	const uint64_t used = engine->ops->used(engine);

	return used < engine->from ? engine->from : used;
}

/* Packets are over. */
void engine_end(struct engine *engine, struct engine_step *ret_step);

/*
 * The packets behind those that were used up contradict the code, or make no sense: go on as soon
 * as it is certain where execution is. What lies before that is a gap.
 */
void engine_lose(struct engine *engine, enum ptd_gap_reason reason, uint64_t ip,
		 struct engine_step *ret_step);

/* Return: whether @n_insns instructions are paid for by the packets that were used up. */
_must_check_ bool engine_can_pay(struct engine *engine, uint64_t n_insns);
