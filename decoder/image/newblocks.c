/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/image/newblocks.h"

#include <assert.h>
#include <string.h>

#include "decoder/image/cache.h"

/* Of many blocks, a look at each run is no more than a look at each of them. */
#define NOTED_MAX 8192

/* So many blocks are remembered as listed. */
#define LISTED_MAX 256

static size_t hash_of(const struct ptd_block *block)
{
	return (size_t)((uintptr_t)block * UINT64_C(0x9e3779b97f4a7c15) >> 52);
}

static_assert(NEWBLOCKS_HASHES == 1 << (64 - 52), "each hash has its place");

void newblocks_deinit(struct newblocks *newblocks)
{
	vec_deinit(&newblocks->noted);
}

void newblocks_note(struct newblocks *newblocks, const struct ptd_block *block)
{
	if (newblocks->is_full || cache_has_shown(block))
		return;
	if (newblocks->noted.n < NOTED_MAX && vec_push(&newblocks->noted, block) == 0) {
		newblocks->hashes[hash_of(block)] = true;
		return;
	}
	newblocks->is_full = true;
	memset(newblocks->hashes, true, sizeof(newblocks->hashes));
}

static void forget_all(struct newblocks *newblocks)
{
	newblocks->noted.n = 0;
	newblocks->is_full = false;
	memset(newblocks->hashes, false, sizeof(newblocks->hashes));
}

/* Forget the noted blocks that were shown. */
static void forget_shown(struct newblocks *newblocks)
{
	const size_t n_before = newblocks->noted.n;

	newblocks->noted.n = 0;
	for (size_t i = 0; i < n_before; i++)
		if (!cache_has_shown(newblocks->noted.items[i]))
			newblocks->noted.items[newblocks->noted.n++] = newblocks->noted.items[i];
	if (newblocks->noted.n == n_before)
		return;
	memset(newblocks->hashes, false, sizeof(newblocks->hashes));
	for (size_t i = 0; i < newblocks->noted.n; i++)
		newblocks->hashes[hash_of(newblocks->noted.items[i])] = true;
}

int newblocks_find(struct newblocks *newblocks, const struct cache *cache,
		   const struct ptd_run *runs, size_t n_runs, struct newblocks_list *list)
{
	const struct ptd_block *listed[LISTED_MAX] = {};

	if (cache_has_shown_all(cache))
		forget_all(newblocks);
	else if (!newblocks->is_full)
		forget_shown(newblocks);
	if (!newblocks->is_full && newblocks->noted.n == 0)
		return 0;
	for (size_t i = 0; i < n_runs; i++) {
		const struct ptd_block *block = runs[i].block;
		const size_t hash = hash_of(block);
		int r;

		if (!newblocks->hashes[hash] || listed[hash % LISTED_MAX] == block ||
		    cache_has_shown(block))
			continue;
		r = vec_push(list, block);
		if (r < 0)
			return r;
		listed[hash % LISTED_MAX] = block;
	}
	return 0;
}
