/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "util/arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_SIZE (64u << 10)

struct arena_chunk {
	struct arena_chunk *next;
	size_t size;
	alignas(max_align_t) uint8_t bytes[];
};

void arena_deinit(struct arena *arena)
{
	struct arena_chunk *next;

	for (struct arena_chunk *c = arena->chunks; c; c = next) {
		next = c->next;
		free(c);
	}
	*arena = (struct arena){};
}

void *arena_alloc(struct arena *arena, size_t size)
{
	const size_t align = alignof(max_align_t);
	struct arena_chunk *c = arena->chunks;
	void *p;

	if (size > SIZE_MAX / 2)
		return NULL;
	size = (size + align - 1) & ~(align - 1);

	if (!c || size > c->size - arena->used) {
		const size_t chunk_size = size > CHUNK_SIZE ? size : CHUNK_SIZE;

		c = calloc(1, sizeof(*c) + chunk_size);
		if (!c)
			return NULL;
		c->size = chunk_size;
		c->next = arena->chunks;
		arena->chunks = c;
		arena->used = 0;
		arena->n_bytes += sizeof(*c) + chunk_size;
	}

	p = c->bytes + arena->used;
	arena->used += size;
	return p;
}

void *arena_copy(struct arena *arena, const void *bytes, size_t size)
{
	void *p = arena_alloc(arena, size);

	if (p && size)
		memcpy(p, bytes, size);
	return p;
}

char *arena_strdup(struct arena *arena, const char *string)
{
	return arena_copy(arena, string, strlen(string) + 1);
}
