/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/codemap.h"

#include "decoder/image/space.h"

void codemap_deinit(struct codemap *map)
{
	if (map->layout.space)
		layout_deinit(&map->layout);
	map->layout.space = NULL;
}

/* Let the layout be that of @space at @t. Return: 0 or -ENOMEM. */
static int go_to(struct codemap *map, const struct space *space, uint64_t t)
{
	const size_t generation = space_generation(space, t);
	int r = 0;

	if (map->layout.space != space || map->layout.generation > generation) {
		codemap_deinit(map);
		layout_init(&map->layout, space);
	}
	while (r == 0 && map->layout.generation < generation)
		r = layout_advance(&map->layout);
	/* A layout that has failed can do nothing more. */
	if (r < 0)
		codemap_deinit(map);
	return r;
}

int codemap_find(struct codemap *map, const struct space *space, uint64_t t, uint64_t ip,
		 const struct object **ret_object, uint64_t *ret_address)
{
	const struct extent *extent;
	const int r = go_to(map, space, t);

	if (r < 0)
		return r;
	extent = layout_find(&map->layout, ip);
	*ret_object = extent ? extent->object : NULL;
	*ret_address =
	    extent ? object_address(extent->object, extent->offset + (ip - extent->start)) : 0;
	return 0;
}
