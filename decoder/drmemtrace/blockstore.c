/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/drmemtrace/blockstore.h"

#include <errno.h>
#include <string.h>

struct stored {
	struct ptd_block block;
	struct stored *next; /* of the same hash */
};

void blockstore_deinit(struct blockstore *store)
{
	arena_deinit(&store->arena);
	map_deinit(&store->blocks);
}

static uint64_t address_of(const struct blockstore_draft *draft)
{
	return draft->pc + draft->link;
}

static uint64_t hash_of(const struct blockstore_draft *draft)
{
	const uint64_t key[] = { address_of(draft), draft->object->id, draft->insns[0].symbol,
				 map_hash(draft->bytes, draft->n_bytes) };

	return map_hash(key, sizeof(key));
}

static bool is_same(const struct ptd_block *block, const struct blockstore_draft *draft)
{
	if (block->object != draft->object || block->mode != draft->mode ||
	    block->address != address_of(draft) || block->n_insns != draft->n_insns ||
	    block->size != draft->n_bytes ||
	    memcmp(block->bytes, draft->bytes, draft->n_bytes) != 0)
		return false;
	for (size_t i = 0; i < draft->n_insns; i++)
		if (block->insns[i].symbol != draft->insns[i].symbol)
			return false;
	return true;
}

int blockstore_get(struct blockstore *store, const struct blockstore_draft *draft,
		   const struct ptd_block **ret_block)
{
	const uint64_t hash = hash_of(draft);
	struct stored *const first = map_pointer(&store->blocks, hash);
	struct stored *made;
	int r;

	for (const struct stored *s = first; s; s = s->next) {
		if (is_same(&s->block, draft)) {
			*ret_block = &s->block;
			return 0;
		}
	}
	made = arena_alloc(&store->arena, sizeof(*made));
	if (!made)
		return -ENOMEM;
	made->next = first;
	made->block = (struct ptd_block){
		.id = store->n,
		.n_insns = (uint16_t)draft->n_insns,
		.size = (uint16_t)draft->n_bytes,
		.mode = draft->mode,
		.object = draft->object,
		.address = address_of(draft),
		.bytes = arena_copy(&store->arena, draft->bytes, draft->n_bytes),
		.insns =
		    arena_copy(&store->arena, draft->insns, draft->n_insns * sizeof(*draft->insns)),
		.target = draft->target,
	};
	if (!made->block.bytes || !made->block.insns)
		return -ENOMEM;
	r = map_put(&store->blocks, hash, (uintptr_t)made);
	if (r < 0)
		return r;
	store->n++;
	*ret_block = &made->block;
	return 0;
}
