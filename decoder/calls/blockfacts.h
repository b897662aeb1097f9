/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Facts about blocks
 *
 * What the rules of calls need to know about a block. It is found once, when the block first runs,
 * and kept by the block's id.
 *
 * A block is plain if control stays in its function when it ends as a whole or in part: unless the
 * block that runs next has another code (functions.h), there is nothing to do. Jumps end plain
 * blocks, too, as far as the code has symbols: where they lead, the next block shows.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/calls/functions.h"
#include "ptd/record.h"
#include "util/vec.h"

enum blockfacts_flags {
	BLOCKFACTS_KNOWN = 1, /* alone: the block is plain */
	BLOCKFACTS_MIXED = 2, /* it has instructions of several codes */
	BLOCKFACTS_TRAPS = 4, /* it installs handlers, or removes them: see trap.h */
	BLOCKFACTS_ENDS = 8,  /* its last instruction is one after which there is something to do */
};

struct blockfacts {
	uint32_t code;  /* of its first instruction */
	uint32_t flags; /* enum blockfacts_flags */
};

/* The blocks that ran last, by a hash of their address, so that a hot one need not be looked at. */
#define BLOCKFACTS_RECENT_BITS 13

struct blockfacts_table {
	VEC(struct blockfacts) facts; /* by block id */
	struct blockfacts_recent {
		const struct ptd_block *block;
		struct blockfacts facts;
	} recent[1 << BLOCKFACTS_RECENT_BITS];
};

void blockfacts_deinit(struct blockfacts_table *table);

static inline struct blockfacts_recent *blockfacts_recent(struct blockfacts_table *table,
							  const struct ptd_block *block)
{
	const uint64_t hash = (uintptr_t)block * UINT64_C(0x9e3779b97f4a7c15);

	return &table->recent[hash >> (64 - BLOCKFACTS_RECENT_BITS)];
}

/* Return: whether the block is plain, and belongs to @code. */
static inline bool blockfacts_is_plain(const struct blockfacts_recent *recent,
				       const struct ptd_block *block, uint32_t code)
{
	return recent->block == block && recent->facts.code == code &&
	       recent->facts.flags == BLOCKFACTS_KNOWN;
}

/*
 * Get the facts about @block.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int blockfacts_get(struct blockfacts_table *table, struct functions *functions,
				const struct ptd_batch *batch, const struct ptd_block *block,
				struct blockfacts *ret_facts);
