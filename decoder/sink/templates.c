/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/sink/templates.h"

#include <string.h>

#define BASES_MAX     64           /* addresses of one block that are looked through */
#define SIZE_MAX_KEPT (256u << 20) /* bytes of templates that are kept from batch to batch */

void templates_deinit(struct templates *templates)
{
	arena_deinit(&templates->arena);
	vec_deinit(&templates->blocks);
	templates->size = 0;
}

bool templates_exceed(const struct templates *templates)
{
	return templates->size > SIZE_MAX_KEPT;
}

void templates_limit(struct templates *templates)
{
	if (!templates_exceed(templates))
		return;
	memset(templates->blocks.items, 0, templates->blocks.n * sizeof(*templates->blocks.items));
	memset(templates->lately, 0, sizeof(templates->lately));
	arena_deinit(&templates->arena);
	templates->size = 0;
}

void *templates_alloc(struct templates *templates, size_t size)
{
	templates->size += size;
	return arena_alloc(&templates->arena, size);
}

struct template *templates_look_up(struct templates *templates, const struct ptd_block *block,
				   uint64_t base)
{
	struct template *t =
	    block->id < templates->blocks.n ? templates->blocks.items[block->id] : NULL;

	for (size_t n = 0; t && n < BASES_MAX; t = t->next, n++) {
		if (t->base == base) {
			templates->lately[templates_hash(block, base)] =
			    (struct templates_found){ block, t };
			return t;
		}
	}
	return NULL;
}

int templates_add(struct templates *templates, const struct ptd_block *block, uint64_t base,
		  struct template *template)
{
	struct template **first = vec_at(&templates->blocks, block->id, NULL);

	if (!first)
		return -ENOMEM;
	template->base = base;
	template->next = *first;
	*first = template;
	return 0;
}
