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
	uint32_t code;        /* of its first instruction */
	uint16_t n_insns;     /* as in the block */
	uint16_t end_offset;  /* behind its last instruction */
	uint16_t last_offset; /* of its last instruction */
	uint8_t last_class;   /* likewise, enum ptd_insn_class */
	uint8_t flags;        /* enum blockfacts_flags */
	uint8_t role;         /* enum function_role, of its function */
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

/* For blockfacts_get(): the block is not among those that ran last. */
const struct blockfacts *blockfacts_find(struct blockfacts_table *table,
					 struct functions *functions, const struct ptd_batch *batch,
					 const struct ptd_block *block);

/* Return: the facts about @block, valid until the next call; NULL: no memory. */
static inline const struct blockfacts *blockfacts_get(struct blockfacts_table *table,
						      struct functions *functions,
						      const struct ptd_batch *batch,
						      const struct ptd_block *block)
{
	const struct blockfacts_recent *recent = blockfacts_recent(table, block);

	return recent->block == block ? &recent->facts
				      : blockfacts_find(table, functions, batch, block);
}
