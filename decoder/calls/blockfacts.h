/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Facts about blocks
 *
 * What the rules of calls need to know about a block. It is found once, when the block first runs,
 * and kept by the block's id.
 *
 * Most blocks have none of the flags: unless the block that runs next has another code
 * (functions.h), there is nothing to do. Jumps end such blocks, too: where they lead, the next
 * block shows, whose code is another one, or which begins a function without a symbol.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/calls/functions.h"
#include "ptd/record.h"
#include "util/vec.h"

enum blockfacts_flags {
	BLOCKFACTS_KNOWN = 1,
	BLOCKFACTS_MIXED = 2, /* it has instructions of several codes */
	BLOCKFACTS_TRAPS = 4, /* it installs handlers, or removes them: see trap.h */
	BLOCKFACTS_ENDS = 8,  /* its last instruction is one after which there is something to do */
	BLOCKFACTS_BEGINS = 16, /* its first one is the first of its function, which has a symbol */
	BLOCKFACTS_START = 32,  /* likewise, which has none */
};

struct blockfacts {
	uint32_t code;    /* of its first instruction */
	uint16_t n_insns; /* as in the block */
	uint8_t flags;    /* enum blockfacts_flags */
	uint8_t role;     /* enum function_role, of its function */
	struct blockfacts_end {
		uint16_t offset;      /* behind its last instruction */
		uint16_t last_offset; /* of that */
		uint8_t last_class;   /* of that, enum ptd_insn_class */
		bool is_unnamed;      /* that is of code without a symbol */
	} end;
};

/*
 * A block that ran lately. Most runs need no more than this, so it is small; how the block ends is
 * kept apart, likewise.
 */
struct blockfacts_recent {
	const struct ptd_block *block;
	uint32_t code;    /* CODE_NONE: all facts must be looked at */
	uint16_t n_insns; /* if its end needs a look; else 0 */
	uint8_t flags;
	uint8_t role;
};

#define BLOCKFACTS_RECENT_BITS 14

struct blockfacts_table {
	VEC(struct blockfacts) facts; /* by block id */
	size_t n_learned, n_starts;   /* of the functions, when the facts were found */

	/* By a hash of the block's address, so that a hot block itself need not be looked at. */
	struct blockfacts_recent recent[1 << BLOCKFACTS_RECENT_BITS];
	struct blockfacts_end ends[1 << BLOCKFACTS_RECENT_BITS];
};

void blockfacts_deinit(struct blockfacts_table *table);

/* Return: whether nothing was learned of @functions since the facts were found. */
static inline bool blockfacts_hold(const struct blockfacts_table *table,
				   const struct functions *functions)
{
	return table->n_starts == functions->n_starts && table->n_learned == functions->n_learned;
}

/* More is known of @functions: find out anew which blocks begin one that has no symbol, and all
 * facts if what some function does was learned. */
void blockfacts_forget(struct blockfacts_table *table, const struct functions *functions);

/* Return: the index at which the block is, if it ran lately. */
static inline size_t blockfacts_index(const struct ptd_block *block)
{
	const uint64_t hash = (uintptr_t)block * UINT64_C(0x9e3779b97f4a7c15);

	return (size_t)(hash >> (64 - BLOCKFACTS_RECENT_BITS));
}

/*
 * Find the facts about @block, and put it among those that ran lately.
 *
 * Return: the facts, valid until the next call; NULL: no memory.
 */
const struct blockfacts *blockfacts_get(struct blockfacts_table *table, struct functions *functions,
					const struct ptd_batch *batch,
					const struct ptd_block *block);
