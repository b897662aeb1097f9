/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Arena
 *
 * Many small allocations that are freed together. An allocation never moves.
 */

#include <stddef.h>

#include "base/base.h"

struct arena_chunk;

struct arena {
	struct arena_chunk *chunks; /* the one in use first */
	size_t used;                /* of the first chunk */
	size_t n_bytes;             /* of all chunks */
};

void arena_deinit(struct arena *arena);

/* Return: @size bytes, zeroed and aligned for any type; NULL if there is no memory. */
void *arena_alloc(struct arena *arena, size_t size);

/* Return: a copy of @bytes; NULL if there is no memory. */
void *arena_copy(struct arena *arena, const void *bytes, size_t size);

/* Return: a copy of the string; NULL if there is no memory. */
char *arena_strdup(struct arena *arena, const char *string);
