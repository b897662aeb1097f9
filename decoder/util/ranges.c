/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/util/ranges.h"

#include <assert.h>
#include <errno.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_ITEMS 128u
#define NEW_MAX     8u /* at first a chunk has room for as many: most stay small */

struct ranges_chunk {
	size_t n, n_capacity;
	alignas(max_align_t) uint8_t items[];
};

void ranges_init(struct ranges *ranges, size_t item_size)
{
	*ranges = (struct ranges){ .item_size = item_size };
}

void ranges_clear(struct ranges *ranges)
{
	for (size_t i = 0; i < ranges->chunks.n; i++)
		free(ranges->chunks.items[i]);
	ranges->chunks.n = ranges->n = 0;
}

void ranges_deinit(struct ranges *ranges)
{
	ranges_clear(ranges);
	vec_deinit(&ranges->chunks);
}

static uint8_t *item_at(const struct ranges *ranges, struct ranges_chunk *chunk, size_t i)
{
	return chunk->items + i * ranges->item_size;
}

/* Where item @i of @chunk ends. */
static uint64_t last_of(const struct ranges *ranges, struct ranges_chunk *chunk, size_t i)
{
	struct range range;

	memcpy(&range, item_at(ranges, chunk, i), sizeof(range));
	return range.last;
}

struct ranges_place ranges_find(const struct ranges *ranges, uint64_t address)
{
	struct ranges_place place = { .chunk = vec_bisect(&ranges->chunks, chunk,
							  last_of(ranges, *chunk, (*chunk)->n - 1) <
							      address) };
	struct ranges_chunk *chunk;
	size_t high;

	if (place.chunk == ranges->chunks.n)
		return place;
	chunk = ranges->chunks.items[place.chunk];
	for (high = chunk->n; place.item < high;) {
		const size_t middle = place.item + (high - place.item) / 2;

		if (last_of(ranges, chunk, middle) < address)
			place.item = middle + 1;
		else
			high = middle;
	}
	return place;
}

struct ranges_place ranges_next(const struct ranges *ranges, struct ranges_place place)
{
	if (++place.item == ranges->chunks.items[place.chunk]->n)
		place = (struct ranges_place){ .chunk = place.chunk + 1 };
	return place;
}

void *ranges_get(const struct ranges *ranges, struct ranges_place place)
{
	if (place.chunk == ranges->chunks.n)
		return NULL;
	return item_at(ranges, ranges->chunks.items[place.chunk], place.item);
}

static struct ranges_chunk *resize_chunk(const struct ranges *ranges, struct ranges_chunk *chunk,
					 size_t n_capacity)
{
	chunk = realloc(chunk, sizeof(*chunk) + n_capacity * ranges->item_size);
	if (chunk)
		chunk->n_capacity = n_capacity;
	return chunk;
}

/* Add an empty chunk as number @i. Return: 0 or -ENOMEM. */
static int add_chunk(struct ranges *ranges, size_t i, size_t n_capacity)
{
	struct ranges_chunk **at, *chunk;
	int r;

	r = vec_reserve(&ranges->chunks, 1);
	if (r < 0)
		return r;
	chunk = resize_chunk(ranges, NULL, n_capacity);
	if (!chunk)
		return -ENOMEM;
	chunk->n = 0;
	at = ranges->chunks.items + i;
	memmove(at + 1, at, (ranges->chunks.n - i) * sizeof(struct ranges_chunk *));
	*at = chunk;
	ranges->chunks.n++;
	return 0;
}

static void remove_chunk(struct ranges *ranges, size_t i)
{
	struct ranges_chunk **at = ranges->chunks.items + i;

	free(*at);
	ranges->chunks.n--;
	memmove(at, at + 1, (ranges->chunks.n - i) * sizeof(struct ranges_chunk *));
}

/* Make the chunk at @place one that has room for @n more. Return: 0 or -ENOMEM. */
static int make_room(struct ranges *ranges, struct ranges_place *place, size_t n)
{
	struct ranges_chunk *chunk, *upper;
	size_t kept;
	int r;

	if (ranges->chunks.n == 0)
		return add_chunk(ranges, 0, NEW_MAX);
	if (place->chunk == ranges->chunks.n) {
		place->chunk--;
		place->item = ranges->chunks.items[place->chunk]->n;
	}
	chunk = ranges->chunks.items[place->chunk];
	if (chunk->n + n <= chunk->n_capacity)
		return 0;
	if (chunk->n_capacity < CHUNK_ITEMS) {
		chunk = resize_chunk(ranges, chunk, 2 * chunk->n_capacity);
		if (!chunk)
			return -ENOMEM;
		ranges->chunks.items[place->chunk] = chunk;
		return 0;
	}

	/* What only grows at its end fills its chunks. */
	kept = place->item == chunk->n ? chunk->n : chunk->n / 2;
	r = add_chunk(ranges, place->chunk + 1, CHUNK_ITEMS);
	if (r < 0)
		return r;
	upper = ranges->chunks.items[place->chunk + 1];
	upper->n = chunk->n - kept;
	memcpy(upper->items, item_at(ranges, chunk, kept), upper->n * ranges->item_size);
	chunk->n = kept;
	if (place->item >= kept) {
		place->chunk++;
		place->item -= kept;
	}
	return 0;
}

/* Remove @n items. Afterwards the chunk at @place may be empty, but no other. */
static void remove_items(struct ranges *ranges, struct ranges_place place, size_t n)
{
	const size_t first = place.chunk;

	while (n > 0) {
		struct ranges_chunk *chunk = ranges->chunks.items[place.chunk];
		const size_t left = chunk->n - place.item, here = n < left ? n : left;

		memmove(item_at(ranges, chunk, place.item),
			item_at(ranges, chunk, place.item + here),
			(left - here) * ranges->item_size);
		chunk->n -= here;
		n -= here;
		if (chunk->n == 0 && place.chunk != first)
			remove_chunk(ranges, place.chunk);
		else
			place.chunk++;
		place.item = 0;
	}
}

int ranges_replace(struct ranges *ranges, struct ranges_place place, size_t n_old,
		   const void *items, size_t n_new)
{
	struct ranges_chunk *chunk;
	int r;

	assert(n_new <= NEW_MAX);
	if (n_old == 0 && n_new == 0)
		return 0;
	r = n_new > 0 ? make_room(ranges, &place, n_new) : 0;
	if (r < 0)
		return r;
	remove_items(ranges, place, n_old);
	ranges->n = ranges->n - n_old + n_new;
	chunk = ranges->chunks.items[place.chunk];
	if (n_new > 0) {
		uint8_t *at = item_at(ranges, chunk, place.item);

		memmove(at + n_new * ranges->item_size, at,
			(chunk->n - place.item) * ranges->item_size);
		memcpy(at, items, n_new * ranges->item_size);
		chunk->n += n_new;
	}
	if (chunk->n == 0)
		remove_chunk(ranges, place.chunk);
	return 0;
}
