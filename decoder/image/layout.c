/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/image/layout.h"

#include <errno.h>
#include <string.h>

void layout_init(struct layout *layout, const struct space *space)
{
	*layout = (struct layout){ .space = space };
}

void layout_deinit(struct layout *layout)
{
	vec_deinit(&layout->extents);
}

/* Return: index of the first extent that ends at or above @address. */
static size_t lower_bound(const struct layout *layout, uint64_t address)
{
	size_t low = 0, high = layout->extents.n;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (layout->extents.items[middle].last < address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

int layout_advance(struct layout *layout, bool *ret_covered)
{
	const struct mapping *m = space_mapping(layout->space, layout->generation);
	const struct extent new = {
		.start = m->start,
		.last = m->start + (m->size - 1),
		.offset = m->offset,
		.object = m->object,
	};
	struct extent
	    pieces[3]; /* what stays of the first covered extent, the new one, of the last */
	size_t n_pieces = 0, from, to;
	struct extent *e;
	int r;

	/* At most one extent becomes three. */
	r = vec_reserve(&layout->extents, 2);
	if (r < 0)
		return r;
	e = layout->extents.items;

	from = to = lower_bound(layout, new.start);
	while (to < layout->extents.n && e[to].start <= new.last)
		to++;

	if (from < to && e[from].start < new.start) {
		pieces[n_pieces] = e[from];
		pieces[n_pieces++].last = new.start - 1;
	}
	pieces[n_pieces++] = new;
	if (from < to && e[to - 1].last > new.last) {
		pieces[n_pieces] = e[to - 1];
		pieces[n_pieces].offset += new.last + 1 - e[to - 1].start;
		pieces[n_pieces++].start = new.last + 1;
	}

	memmove(e + from + n_pieces, e + to, (layout->extents.n - to) * sizeof(*e));
	memcpy(e + from, pieces, n_pieces * sizeof(*e));
	layout->extents.n = layout->extents.n - (to - from) + n_pieces;
	layout->generation++;
	*ret_covered = from < to;
	return 0;
}

const struct extent *layout_find(struct layout *layout, uint64_t address)
{
	const struct extent *e = layout->extents.items;

	if (layout->hint < layout->extents.n && e[layout->hint].start <= address &&
	    address <= e[layout->hint].last)
		return &e[layout->hint];

	layout->hint = lower_bound(layout, address);
	if (layout->hint == layout->extents.n || e[layout->hint].start > address)
		return NULL;
	return &e[layout->hint];
}
