/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Templates
 *
 * What one thread made of blocks, so that it need not be made again when they run again. A template
 * is of one block at one address. Each kind of sink has templates of its own: a struct whose first
 * member is struct template.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "ptd/record.h"
#include "util/arena.h"
#include "util/vec.h"

#define TEMPLATES_LATELY_BITS 12

struct template
{
	struct template *next; /* of the same block, at another address */
	uint64_t base;
};

struct templates {
	/* By a hash of block and base, what was found last: looking there touches no block. */
	struct templates_found {
		const struct ptd_block *block; /* NULL: nothing yet */
		struct template *template;
	} lately[1 << TEMPLATES_LATELY_BITS];
	VEC(struct template *) blocks; /* by block id: the template that was added last */
	struct arena arena;            /* of the templates */
	size_t size;                   /* bytes in the arena */
};

void templates_deinit(struct templates *templates);

/* Return: whether there are too many templates. */
bool templates_exceed(const struct templates *templates);

/* If there are too many templates, forget all of them. Pointers to them are then void. */
void templates_limit(struct templates *templates);

/* Return: @size bytes for a template, aligned for any type; NULL if there is no memory. */
void *templates_alloc(struct templates *templates, size_t size);

/* Add the template of @block at @base, which templates_alloc() made. Return: 0 or -ENOMEM. */
_must_check_ int templates_add(struct templates *templates, const struct ptd_block *block,
			       uint64_t base, struct template *template);

static inline size_t templates_hash(const struct ptd_block *block, uint64_t base)
{
	return (size_t)(((uintptr_t)block + base) * UINT64_C(0x9e3779b97f4a7c15) >>
			(64 - TEMPLATES_LATELY_BITS));
}

/* For templates_find(): look through all templates of the block. */
struct template *templates_look_up(struct templates *templates, const struct ptd_block *block,
				   uint64_t base);

/* Return: the template of @block at @base; NULL if it has to be made. */
static inline struct template *templates_find(struct templates *templates,
					      const struct ptd_block *block, uint64_t base)
{
	const struct templates_found *found = &templates->lately[templates_hash(block, base)];

	if (found->block == block && found->template->base == base)
		return found->template;
	return templates_look_up(templates, block, base);
}

/* Have the CPU fetch the first bytes of a template that is looked for soon. */
static inline void templates_prefetch(const struct templates *templates,
				      const struct ptd_block *block, uint64_t base)
{
	const char *template =
	    (const char *)templates->lately[templates_hash(block, base)].template;

	for (size_t i = 0; i < 256; i += 64)
		__builtin_prefetch(template + i);
}
