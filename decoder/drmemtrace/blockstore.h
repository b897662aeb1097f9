/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Block store
 *
 * The blocks of a drmemtrace directory, or of what perf decoded. A block is made of instructions as
 * they executed, one behind the other, up to a branch or to where the trace broke off. Threads that
 * executed the same code share its blocks. Blocks stay until the store is freed, so memory grows
 * with the code that ran, not with the length of the trace.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "ptd/record.h"
#include "util/arena.h"
#include "util/map.h"

#define BLOCKSTORE_INSNS_MAX 64
#define BLOCKSTORE_BYTES_MAX (BLOCKSTORE_INSNS_MAX * 15)

struct blockstore {
	struct arena arena;
	struct map blocks; /* hash → pointer; others of the same hash hang behind it */
	uint32_t n;
};

/* A block that is being made. */
struct blockstore_draft {
	uint64_t pc;   /* of the first instruction */
	uint64_t link; /* address as linked = pc + link */
	const struct ptd_object *object;
	uint8_t mode; /* 32 or 64 */
	uint8_t bytes[BLOCKSTORE_BYTES_MAX];
	struct ptd_insn insns[BLOCKSTORE_INSNS_MAX];
	size_t n_bytes, n_insns;
	int64_t target; /* as in struct ptd_block */
};

void blockstore_deinit(struct blockstore *store);

/*
 * Find or make the block that @draft describes, which has instructions.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int blockstore_get(struct blockstore *store, const struct blockstore_draft *draft,
				const struct ptd_block **ret_block);
