/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Cache
 *
 * The blocks of all code met so far, each decoded once, by object, offset and mode. Blocks stay
 * where they are until the cache is freed, so memory grows with the code that ran, not with the
 * length of the trace.
 *
 * Several threads may get blocks at the same time. A block has its id, and its instructions have
 * their symbols, once it was shown; blocks are shown by one thread, in the order of the stream, so
 * that ids do not depend on the others.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/image/object.h"
#include "ptd/record.h"

/* Longer straight-line code is cut into several blocks. */
#define CACHE_BLOCK_INSNS_MAX 64

#define CACHE_NOT_SHOWN UINT32_MAX /* instead of an id */

struct cache;

/* Fills in insns[i].symbol of a new block. Return: 0 or negative errno. */
typedef int (*cache_annotate_fn)(void *userdata, const struct object *object,
				 const struct ptd_block *block, struct ptd_insn *insns);

/* @annotate may be NULL: no symbols. */
_must_check_ int cache_new(cache_annotate_fn annotate, void *userdata, struct cache **ret_cache);
struct cache *cache_free(struct cache *cache);

/*
 * The block at @offset in @object's file: straight-line code up to a branch, the end of the file,
 * or bytes that are no instruction.
 *
 * Return: 0; -EBADMSG if not even one instruction can be decoded there; -ENOMEM.
 */
_must_check_ int cache_get(struct cache *cache, const struct object *object, uint64_t offset,
			   uint8_t mode, const struct ptd_block **ret_block);

/*
 * A block of the one instruction in @bytes, which starts at @offset in @object's file but is not
 * all there: it goes on in another mapping.
 *
 * Return: as cache_get().
 */
_must_check_ int cache_get_stitched(struct cache *cache, const struct object *object,
				    uint64_t offset, uint8_t mode, const uint8_t *bytes,
				    size_t size, const struct ptd_block **ret_block);

/* Return: whether the block was shown. Any thread may ask. */
static inline bool cache_has_shown(const struct ptd_block *block)
{
	return __atomic_load_n(&block->id, __ATOMIC_RELAXED) != CACHE_NOT_SHOWN;
}

/* Blocks of the cache. */
struct cache_blocks {
	const struct ptd_block **items;
	size_t n;
	size_t n_capacity;
};

/* Have the CPU fetch a block, and the instructions of one that was fetched before, that are shown
 * soon: another thread has made them. */
static inline void cache_prefetch(const struct ptd_block *block)
{
	__builtin_prefetch(block, 1);
}
static inline void cache_prefetch_insns(const struct ptd_block *block)
{
	__builtin_prefetch(block->insns, 1);
	__builtin_prefetch(&block->insns[block->n_insns - 1], 1);
}

/* Give the block of the cache, which was not shown, its id, and symbols. Return: 0 or -errno. */
_must_check_ int cache_show(struct cache *cache, const struct ptd_block *block);

DEFINE_CLEANUP(struct cache *, cache_free);
