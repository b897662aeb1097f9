/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Path
 *
 * The way that a thread took through its code, as a sequence of steps: the places at which it did
 * not go on with the next instruction. Between two steps it executed one instruction after the
 * other, so two threads with the same steps executed the same instructions. How the stream cuts
 * the way into batches and runs makes no difference, and neither does a thread's waiting.
 *
 * Steps name instructions by places, which do not depend on where code was mapped, so that the
 * paths of two executions of a program can be compared. A place is a hash of the name of the file,
 * without its directory, plus the instruction's address as linked. In memory that is no file, it is
 * a hash of the symbol's name plus the offset in the symbol. Code in such memory without a symbol
 * has its address only.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "ptd/record.h"
#include "util/vec.h"

/* Computes places. Object and symbol ids are those of one decoder. */
struct path_places {
	VEC(uint64_t) objects; /* by id: hash of the file's name; 0: not known yet; see path.c */
	VEC(uint64_t) symbols; /* by id, likewise */
};

enum path_step_kind {
	PATH_BRANCH,
	PATH_INTERRUPTED, /* by a signal, fault or interrupt */
	PATH_BROKEN,      /* there is a gap: what ran in between is not known */
	PATH_END,         /* it does not go on */
	_PATH_STEP_KINDS,
};

struct path_step {
	enum path_step_kind kind;
	uint64_t from;    /* place of the last instruction before it; 0: the path begins */
	uint64_t to;      /* place of the next instruction; 0: there is none */
	uint64_t n_insns; /* number of instructions before it */
};

/* A path as far as it is known. It begins with all members 0. */
struct path {
	uint64_t n_insns;
	const struct ptd_block *block; /* of the last instruction; NULL: there is none yet */
	uint16_t insn;                 /* its index */
	uint64_t next_ip;              /* address behind it */
	enum path_step_kind pending;   /* what marks have said since */
};

void path_places_deinit(struct path_places *places);

/* A mark stands before the next run. */
void path_mark(struct path *path, const struct ptd_mark *mark);

/*
 * The thread goes on with @run.
 *
 * Return: 0: without a step; PATH_STEP, and @ret_step, which is before the run; or -ENOMEM.
 */
_must_check_ int path_run(struct path *path, struct path_places *places,
			  const struct ptd_batch *batch, const struct ptd_run *run,
			  struct path_step *ret_step);
enum {
	PATH_STEP = 1,
};

/* --- rejoining -------------------------------------------------------------------------------- */

/*
 * Finds out where two paths that differ go on alike, and how much of them is different. Paths are
 * alike from where the next REJOIN_STEPS steps are the same, or all steps up to the end of both. Of
 * several such places, the one counts that has the fewest steps before it in both together.
 */

#define REJOIN_STEPS 16

/* The steps of one path, as far as they are known. */
struct rejoin_path {
	const struct path_step *steps;
	size_t n;
};

struct rejoin {
	bool is_found;           /* the paths go on alike behind their first difference: */
	uint64_t n_insns[2];     /* instructions of each before that */
	size_t n_more;           /* differences behind that, as far as the steps are known */
	uint64_t n_different[2]; /* instructions of all differences */
	uint64_t n_compared[2];  /* since the first difference, up to where nothing is known */
	bool is_whole;           /* both paths were compared up to their ends */
};

/*
 * Compare two paths, whose first difference is at step @first of both.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int rejoin_find(const struct rejoin_path paths[static 2], size_t first,
			     struct rejoin *ret_rejoin);
