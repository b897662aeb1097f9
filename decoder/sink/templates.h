/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Templates
 *
 * What one thread made of blocks, so that it need not be made again when they run again. A template
 * is of one block at one address. Each kind of sink has templates of its own: a struct whose first
 * member is struct template.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "ptd/record.h"
#include "util/arena.h"
#include "util/vec.h"

#define TEMPLATES_BASES_MAX 64 /* addresses of one block that are looked through */

struct template
{
	struct template *next; /* of the same block, at another address */
	uint64_t base;
};

struct templates {
	VEC(struct template *) blocks; /* by block id: the template that was added last */
	struct arena arena;            /* of the templates */
	size_t size;                   /* bytes in the arena */
};

void templates_deinit(struct templates *templates);

/* If there are too many templates, forget all of them. Pointers to them are then void. */
void templates_limit(struct templates *templates);

/* Return: @size bytes for a template, aligned for any type; NULL if there is no memory. */
void *templates_alloc(struct templates *templates, size_t size);

/* Add the template of @block at @base, which templates_alloc() made. Return: 0 or -ENOMEM. */
_must_check_ int templates_add(struct templates *templates, const struct ptd_block *block,
			       uint64_t base, struct template *template);

/* Return: the template of @block at @base; NULL if it has to be made. */
static inline struct template *templates_find(const struct templates *templates,
					      const struct ptd_block *block, uint64_t base)
{
	struct template *t =
	    block->id < templates->blocks.n ? templates->blocks.items[block->id] : NULL;

	for (size_t n = 0; t && n < TEMPLATES_BASES_MAX; t = t->next, n++)
		if (t->base == base)
			return t;
	return NULL;
}
