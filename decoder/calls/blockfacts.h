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

struct blockfacts {
	uint32_t code;     /* of its first instruction */
	uint32_t end_code; /* of its last one */
	bool is_known;
	bool is_plain;
	bool is_mixed; /* it has instructions of several codes */
	bool ends;     /* its last instruction is one after which there is something to do */
};

/* The blocks that ran last, by a hash of their address, so that a hot one need not be looked at. */
#define BLOCKFACTS_RECENT_BITS 12

struct blockfacts_table {
	VEC(struct blockfacts) facts; /* by block id */
	struct blockfacts_recent {
		const struct ptd_block *block;
		uint32_t code; /* CODE_NONE unless the block is plain */
	} recent[1 << BLOCKFACTS_RECENT_BITS];
};

void blockfacts_deinit(struct blockfacts_table *table);

static inline struct blockfacts_recent *blockfacts_recent(struct blockfacts_table *table,
							  const struct ptd_block *block)
{
	const uint64_t hash = (uintptr_t)block * UINT64_C(0x9e3779b97f4a7c15);

	return &table->recent[hash >> (64 - BLOCKFACTS_RECENT_BITS)];
}

/*
 * Get the facts about @block. They are valid until the next call.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int blockfacts_get(struct blockfacts_table *table, struct functions *functions,
				const struct ptd_batch *batch, const struct ptd_block *block,
				const struct blockfacts **ret_facts);
