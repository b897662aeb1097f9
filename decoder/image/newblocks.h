/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * New blocks
 *
 * Finds, among the runs of one thread, the blocks that were not shown yet (cache_show()). Nearly
 * all runs are of blocks that were shown long ago. To look at each block would cost much: runs are
 * in the CPU's caches, but all blocks that ran are not. So a block that is not shown is noted when
 * the thread first comes to it, and a run is looked at more closely only if the hash of its block
 * is that of a noted one.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "ptd/record.h"
#include "util/vec.h"

#define NEWBLOCKS_HASHES ((size_t)1 << 12)

struct cache;

/* All bytes are 0 at first. */
struct newblocks {
	VEC(const struct ptd_block *) noted; /* some may have been shown since */
	bool is_full;                        /* others would have been noted: all hashes are set */
	bool hashes[NEWBLOCKS_HASHES];       /* whether one of them has this hash */
};

struct newblocks_list {
	const struct ptd_block **items;
	size_t n;
	size_t n_capacity;
};

void newblocks_deinit(struct newblocks *newblocks);

/* The thread will have runs of @block. */
void newblocks_note(struct newblocks *newblocks, const struct ptd_block *block);

/*
 * Add to @list the blocks of @runs, which were all noted, that were not shown, in the order in
 * which they first run. A block may be there several times.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int newblocks_find(struct newblocks *newblocks, const struct cache *cache,
				const struct ptd_run *runs, size_t n_runs,
				struct newblocks_list *list);
