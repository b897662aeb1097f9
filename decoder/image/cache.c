/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/image/cache.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/x86/insn.h"
#include "util/arena.h"
#include "util/map.h"
#include "util/vec.h"

#define BLOCK_SIZE_MAX (CACHE_BLOCK_INSNS_MAX * 15)

/* One object's blocks in one mode, by offset. */
struct shelf {
	struct map blocks;   /* offset -> pointer */
	struct map stitched; /* hash of offset and bytes -> pointer; others hang behind it */
};

struct stitched {
	struct ptd_block block;
	uint64_t offset;
	struct stitched *next; /* of the same hash */
};

/*
 * The shelves are in several rooms, by the hash of where code lies, so that a thread that decodes a
 * block, or reads its bytes from a file, rarely keeps others waiting.
 */
#define ROOM_BITS 4

struct room {
	pthread_mutex_t mutex; /* of what follows */
	struct arena arena;
	VEC(struct shelf) shelves; /* three an object: 16, 32, 64 bit */
};

struct cache {
	cache_annotate_fn annotate;
	void *userdata;
	struct room rooms[1 << ROOM_BITS];
	uint32_t n_made, n_shown; /* blocks */
};

int cache_new(cache_annotate_fn annotate, void *userdata, struct cache **ret_cache)
{
	struct cache *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	for (size_t i = 0; i < ARRAY_LEN(c->rooms); i++)
		(void)pthread_mutex_init(&c->rooms[i].mutex, NULL);
	c->annotate = annotate;
	c->userdata = userdata;
	*ret_cache = c;
	return 0;
}

static void deinit_room(struct room *room)
{
	for (size_t i = 0; i < room->shelves.n; i++) {
		map_deinit(&room->shelves.items[i].blocks);
		map_deinit(&room->shelves.items[i].stitched);
	}
	vec_deinit(&room->shelves);
	arena_deinit(&room->arena);
	(void)pthread_mutex_destroy(&room->mutex);
}

struct cache *cache_free(struct cache *cache)
{
	if (!cache)
		return NULL;

	for (size_t i = 0; i < ARRAY_LEN(cache->rooms); i++)
		deinit_room(&cache->rooms[i]);
	free(cache);
	return NULL;
}

static struct room *room_of(struct cache *cache, uint64_t offset)
{
	return &cache->rooms[offset * UINT64_C(0x9e3779b97f4a7c15) >> (64 - ROOM_BITS)];
}

static int shelf_of(struct room *room, const struct object *object, uint8_t mode,
		    struct shelf **ret_shelf)
{
	const size_t i = 3 * (size_t)object->id.id + (mode == 64 ? 2 : mode == 32 ? 1 : 0);
	int r;

	if (i >= room->shelves.n) {
		r = vec_reserve(&room->shelves, i + 1 - room->shelves.n);
		if (r < 0)
			return r;
		while (room->shelves.n <= i)
			room->shelves.items[room->shelves.n++] = (struct shelf){};
	}
	*ret_shelf = &room->shelves.items[i];
	return 0;
}

/*
 * Decode straight-line code: the @size bytes at @bytes, which stay there, or less.
 *
 * Return: 0; -EBADMSG if there is not even one instruction; -ENOMEM.
 */
static int decode_block(struct room *room, const struct object *object, uint64_t offset,
			uint8_t mode, const uint8_t *bytes, size_t size,
			struct ptd_block *ret_block)
{
	struct ptd_insn insns[CACHE_BLOCK_INSNS_MAX], *kept;
	struct ptd_block block = { .id = CACHE_NOT_SHOWN,
				   .mode = mode,
				   .object = &object->id,
				   .address = object_address(object, offset),
				   .bytes = bytes };
	size_t n = 0, at = 0;
	struct insn insn;

	while (n < CACHE_BLOCK_INSNS_MAX && insn_decode(mode, bytes + at, size - at, &insn) == 0) {
		insns[n++] = (struct ptd_insn){ .offset = (uint16_t)at,
						.size = insn.size,
						.iclass = insn.class };
		at += insn.size;
		if (insn.class != PTD_INSN_OTHER && insn.class != PTD_INSN_PTWRITE) {
			block.target = (int64_t)((uint64_t)at + (uint64_t)insn.disp);
			break;
		}
	}
	if (n == 0)
		return -EBADMSG;
	kept = arena_copy(&room->arena, insns, n * sizeof(*insns));
	if (!kept)
		return -ENOMEM;
	block.insns = kept;
	block.n_insns = (uint16_t)n;
	block.size = (uint16_t)at;
	*ret_block = block;
	return 0;
}

int cache_show(struct cache *cache, const struct ptd_block *block)
{
	struct ptd_block *own = (struct ptd_block *)(uintptr_t)block;
	int r = 0;

	if (cache->annotate)
		r = cache->annotate(cache->userdata,
				    (const struct object *)((const char *)block->object -
							    offsetof(struct object, id)),
				    block, (struct ptd_insn *)(uintptr_t)block->insns);
	if (r < 0)
		return r;
	__atomic_store_n(&own->id, cache->n_shown, __ATOMIC_RELAXED);
	__atomic_store_n(&cache->n_shown, cache->n_shown + 1, __ATOMIC_RELEASE);
	return 0;
}

bool cache_has_shown_all(const struct cache *cache)
{
	/* Of those that were made until now, so many were shown before. */
	const uint32_t n_shown = __atomic_load_n(&cache->n_shown, __ATOMIC_ACQUIRE);

	return __atomic_load_n(&cache->n_made, __ATOMIC_RELAXED) == n_shown;
}

static void count_block(struct cache *cache)
{
	(void)__atomic_add_fetch(&cache->n_made, 1, __ATOMIC_RELAXED);
}

/* cache_get() with the mutex of @room locked. */
static int get(struct cache *cache, struct room *room, const struct object *object, uint64_t offset,
	       uint8_t mode, const struct ptd_block **ret_block)
{
	struct ptd_block *block;
	struct shelf *shelf;
	const uint8_t *bytes;
	uint64_t *known;
	size_t size;
	int r;

	r = shelf_of(room, object, mode, &shelf);
	if (r < 0)
		return r;
	known = map_get(&shelf->blocks, offset);
	if (known) {
		*ret_block = (const struct ptd_block *)(uintptr_t)*known;
		return 0;
	}

	if (offset >= object->size)
		return -EBADMSG;
	size = object->size - offset < BLOCK_SIZE_MAX ? object->size - offset : BLOCK_SIZE_MAX;
	bytes = object_bytes(object, offset, size);
	if (!bytes)
		return -EBADMSG;
	block = arena_alloc(&room->arena, sizeof(*block));
	if (!block)
		return -ENOMEM;
	r = decode_block(room, object, offset, mode, bytes, size, block);
	if (r == 0)
		r = map_put(&shelf->blocks, offset, (uintptr_t)block);
	if (r < 0)
		return r;
	count_block(cache);
	*ret_block = block;
	return 0;
}

int cache_get(struct cache *cache, const struct object *object, uint64_t offset, uint8_t mode,
	      const struct ptd_block **ret_block)
{
	struct room *room = room_of(cache, offset);
	int r;

	(void)pthread_mutex_lock(&room->mutex);
	r = get(cache, room, object, offset, mode, ret_block);
	(void)pthread_mutex_unlock(&room->mutex);
	return r;
}

static uint64_t hash_stitched(uint64_t offset, const uint8_t *bytes, size_t size)
{
	const uint64_t key[] = { offset, map_hash(bytes, size) };

	return map_hash(key, sizeof(key));
}

/* cache_get_stitched() with the mutex of @room locked. */
static int get_stitched(struct cache *cache, struct room *room, const struct object *object,
			uint64_t offset, uint8_t mode, const uint8_t *bytes, size_t size,
			const struct ptd_block **ret_block)
{
	const uint64_t key = hash_stitched(offset, bytes, size);
	struct stitched *s, *latest;
	struct shelf *shelf;
	uint64_t *known;
	int r;

	r = shelf_of(room, object, mode, &shelf);
	if (r < 0)
		return r;
	known = map_get(&shelf->stitched, key);
	latest = known ? (struct stitched *)(uintptr_t)*known : NULL;
	for (s = latest; s; s = s->next) {
		if (s->offset == offset && s->block.size == size &&
		    memcmp(s->block.bytes, bytes, size) == 0) {
			*ret_block = &s->block;
			return 0;
		}
	}

	s = arena_alloc(&room->arena, sizeof(*s));
	bytes = arena_copy(&room->arena, bytes, size);
	if (!s || !bytes)
		return -ENOMEM;
	*s = (struct stitched){ .offset = offset, .next = latest };
	r = decode_block(room, object, offset, mode, bytes, size, &s->block);
	if (r == 0 && (s->block.n_insns != 1 || s->block.size != size))
		r = -EBADMSG;
	if (r == 0)
		r = map_put(&shelf->stitched, key, (uintptr_t)s);
	if (r < 0)
		return r;
	count_block(cache);
	*ret_block = &s->block;
	return 0;
}

int cache_get_stitched(struct cache *cache, const struct object *object, uint64_t offset,
		       uint8_t mode, const uint8_t *bytes, size_t size,
		       const struct ptd_block **ret_block)
{
	struct room *room = room_of(cache, offset);
	int r;

	(void)pthread_mutex_lock(&room->mutex);
	r = get_stitched(cache, room, object, offset, mode, bytes, size, ret_block);
	(void)pthread_mutex_unlock(&room->mutex);
	return r;
}
