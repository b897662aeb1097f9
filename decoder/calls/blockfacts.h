/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Facts about blocks
 *
 * What the rules of calls need to know about a block. It is found once, when the block first runs,
 * and kept by the block's id.
 *
 * Most blocks have none of the flags: unless the block that runs next has another code
 * (functions.h), there is nothing to do. Jumps end such blocks, too, if the code has symbols:
 * where they lead, the next block shows.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/calls/functions.h"
#include "ptd/record.h"
#include "util/vec.h"

enum blockfacts_flags {
	BLOCKFACTS_KNOWN = 1,
	BLOCKFACTS_MIXED = 2, /* it has instructions of several codes */
	BLOCKFACTS_TRAPS = 4, /* it installs handlers, or removes them: see trap.h */
	BLOCKFACTS_ENDS = 8,  /* its last instruction is one after which there is something to do */
	BLOCKFACTS_BEGINS = 16, /* its first one is the first of its function, which has a symbol */
};

struct blockfacts {
	uint32_t code;    /* of its first instruction */
	uint16_t n_insns; /* as in the block */
	uint8_t flags;    /* enum blockfacts_flags */
	uint8_t role;     /* enum function_role, of its function */
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

/* Find out what blockfacts_get() is asked for. */
_must_check_ int blockfacts_find(struct blockfacts_table *table, struct functions *functions,
				 const struct ptd_batch *batch, const struct ptd_block *block,
				 struct blockfacts *ret_facts);

/*
 * Get the facts about @block.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ static inline int blockfacts_get(struct blockfacts_table *table,
					      struct functions *functions,
					      const struct ptd_batch *batch,
					      const struct ptd_block *block,
					      struct blockfacts *ret_facts)
{
	const struct blockfacts_recent *recent = blockfacts_recent(table, block);

	if (recent->block != block)
		return blockfacts_find(table, functions, batch, block, ret_facts);
	*ret_facts = recent->facts;
	return 0;
}
