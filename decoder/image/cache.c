/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/image/cache.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/util/mutex.h"
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
	uint32_t n_shown; /* blocks; the next id */
};

int cache_new(cache_annotate_fn annotate, void *userdata, struct cache **ret_cache)
{
	struct cache *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	for (size_t i = 0; i < ARRAY_LEN(c->rooms); i++)
		mutex_init_short(&c->rooms[i].mutex);
	c->annotate = annotate;
	c->userdata = userdata;
	*ret_cache = c;
	return 0;
}

static void deinit_room(struct room *room)
{
	vec_deinit_each(&room->shelves, shelf, {
		map_deinit(&shelf->blocks);
		map_deinit(&shelf->stitched);
	});
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

	*ret_shelf = vec_at(&room->shelves, i, {});
	return *ret_shelf ? 0 : -ENOMEM;
}

/*
 * Decode straight-line code: the @size bytes at @bytes, which stay there, or less.
 *
 * Return: 0, and the instructions of the block are @insns; -EBADMSG if there is not even one.
 */
static int decode_block(const struct object *object, uint64_t offset, uint8_t mode,
			const uint8_t *bytes, size_t size,
			struct ptd_insn insns[static CACHE_BLOCK_INSNS_MAX],
			struct ptd_block *ret_block)
{
	struct ptd_block block = { .id = CACHE_NOT_SHOWN,
				   .insns = insns,
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
	__atomic_store_n(&own->id, cache->n_shown++, __ATOMIC_RELAXED);
	return 0;
}

/* Find the block at @offset. The mutex of @room is locked. Return: 0, and it is NULL if there is
 * none; or -ENOMEM. */
static int find_block(struct room *room, const struct object *object, uint64_t offset, uint8_t mode,
		      struct shelf **ret_shelf, const struct ptd_block **ret_block)
{
	const int r = shelf_of(room, object, mode, ret_shelf);

	if (r < 0)
		return r;
	*ret_block = map_pointer(&(*ret_shelf)->blocks, offset);
	return 0;
}

/* Keep @block at @to, with its instructions. The mutex of @room is locked. Return: 0 or -ENOMEM. */
static int keep_block(struct room *room, const struct ptd_block *block, struct ptd_block *to)
{
	*to = *block;
	to->insns = arena_copy(&room->arena, block->insns, block->n_insns * sizeof(*block->insns));
	return to->insns ? 0 : -ENOMEM;
}

/* Add @made, which was decoded, to the cache, unless another thread has done so meanwhile. The
 * mutex of @room is locked. */
static int add_block(struct room *room, const struct object *object, uint64_t offset,
		     const struct ptd_block *made, const struct ptd_block **ret_block)
{
	struct ptd_block *block;
	struct shelf *shelf;
	int r;

	r = find_block(room, object, offset, made->mode, &shelf, ret_block);
	if (r < 0 || *ret_block)
		return r;
	block = arena_alloc(&room->arena, sizeof(*block));
	r = block ? keep_block(room, made, block) : -ENOMEM;
	if (r == 0)
		r = map_put(&shelf->blocks, offset, (uintptr_t)block);
	if (r < 0)
		return r;
	*ret_block = block;
	return 0;
}

/* Make the block at @offset. Its bytes may have to be read, so that no mutex is locked until then.
 */
static int make_block(struct room *room, const struct object *object, uint64_t offset, uint8_t mode,
		      const struct ptd_block **ret_block)
{
	struct ptd_insn insns[CACHE_BLOCK_INSNS_MAX];
	struct ptd_block block;
	const uint8_t *bytes;
	size_t size;
	int r;

	if (offset >= object->size)
		return -EBADMSG;
	size = object->size - offset < BLOCK_SIZE_MAX ? object->size - offset : BLOCK_SIZE_MAX;
	bytes = object_bytes(object, offset, size);
	if (!bytes)
		return -EBADMSG;
	r = decode_block(object, offset, mode, bytes, size, insns, &block);
	if (r < 0)
		return r;
	(void)pthread_mutex_lock(&room->mutex);
	r = add_block(room, object, offset, &block, ret_block);
	(void)pthread_mutex_unlock(&room->mutex);
	return r;
}

int cache_get(struct cache *cache, const struct object *object, uint64_t offset, uint8_t mode,
	      const struct ptd_block **ret_block)
{
	struct room *room = room_of(cache, offset);
	struct shelf *shelf;
	int r;

	(void)pthread_mutex_lock(&room->mutex);
	r = find_block(room, object, offset, mode, &shelf, ret_block);
	(void)pthread_mutex_unlock(&room->mutex);
	return r < 0 || *ret_block ? r : make_block(room, object, offset, mode, ret_block);
}

static uint64_t hash_stitched(uint64_t offset, const uint8_t *bytes, size_t size)
{
	const uint64_t key[] = { offset, map_hash(bytes, size) };

	return map_hash(key, sizeof(key));
}

/* cache_get_stitched() with the mutex of @room locked. */
static int get_stitched(struct room *room, const struct object *object, uint64_t offset,
			uint8_t mode, const uint8_t *bytes, size_t size,
			const struct ptd_block **ret_block)
{
	const uint64_t key = hash_stitched(offset, bytes, size);
	struct ptd_insn insns[CACHE_BLOCK_INSNS_MAX];
	struct stitched *s, *latest;
	struct ptd_block block;
	struct shelf *shelf;
	int r;

	r = shelf_of(room, object, mode, &shelf);
	if (r < 0)
		return r;
	latest = map_pointer(&shelf->stitched, key);
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
	r = decode_block(object, offset, mode, bytes, size, insns, &block);
	if (r == 0 && (block.n_insns != 1 || block.size != size))
		r = -EBADMSG;
	if (r == 0)
		r = keep_block(room, &block, &s->block);
	if (r == 0)
		r = map_put(&shelf->stitched, key, (uintptr_t)s);
	if (r < 0)
		return r;
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
	r = get_stitched(room, object, offset, mode, bytes, size, ret_block);
	(void)pthread_mutex_unlock(&room->mutex);
	return r;
}
