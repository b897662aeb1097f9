/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/image/layout.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Mappings, and what is below them, that are looked at for doubts; of what is there so many bytes are compared. */
#define DOUBTS_MAX   4096
#define COMPARED_MAX (UINT64_C(1) << 14)

/* The same once for all. */
#define ALL_DOUBTS_MAX   (1u << 22)
#define ALL_COMPARED_MAX (UINT64_C(1) << 30)

/* An instruction that begins so far before code that is in doubt may reach into it. */
#define REACH 14

void layout_init(struct layout *layout, const struct space *space)
{
	*layout = (struct layout){ .space = space };
}

void layout_deinit(struct layout *layout)
{
	vec_deinit(&layout->extents);
	vec_deinit(&layout->added);
	vec_deinit(&layout->doubts);
}

/* Return: index of the first extent that ends at or above @address. */
static size_t lower_bound(const struct layout *layout, uint64_t address)
{
	return vec_bisect(&layout->extents, e, e->last < address);
}

static bool has_all_bytes(const struct extent *e)
{
	return e->object->state == OBJECT_OK && e->offset < e->object->size &&
	       e->last - e->start < e->object->size - e->offset;
}

/* Whether @new hides bytes of the extents from index @from to before @to, but has none there. */
static bool bares(const struct layout *layout, size_t from, size_t to, const struct extent *new)
{
	if (from == to || has_all_bytes(new))
		return false;
	for (size_t i = from; i < to; i++)
		if (layout->extents.items[i].object->state == OBJECT_OK)
			return true;
	return false;
}

/* Put @new in, over whatever is there. */
static int cover(struct layout *layout, const struct extent *new)
{
	/* What stays of the first covered extent, the new one, what stays of the last. */
	struct extent pieces[3];
	size_t n_pieces = 0, from, to;
	struct extent *e;
	int r;

	/* At most one extent becomes three. */
	r = vec_reserve(&layout->extents, 2);
	if (r < 0)
		return r;
	e = layout->extents.items;

	from = to = lower_bound(layout, new->start);
	while (to < layout->extents.n && e[to].start <= new->last)
		to++;

	if (from < to && e[from].start < new->start) {
		pieces[n_pieces] = e[from];
		pieces[n_pieces++].last = new->start - 1;
	}
	pieces[n_pieces++] = *new;
	if (from < to && e[to - 1].last > new->last) {
		pieces[n_pieces] = e[to - 1];
		pieces[n_pieces].offset += new->last + 1 - e[to - 1].start;
		pieces[n_pieces++].start = new->last + 1;
	}

	layout->bared = layout->bared || bares(layout, from, to, new);
	if (n_pieces != to - from)
		memmove(e + from + n_pieces, e + to, (layout->extents.n - to) * sizeof(*e));
	memcpy(e + from, pieces, n_pieces * sizeof(*e));
	layout->extents.n = layout->extents.n - (to - from) + n_pieces;
	return vec_push(&layout->added, *new);
}

static bool covers(enum mapping_kind new, enum mapping_kind old)
{
	switch (new) {
	case MAPPING_MEMORY:
		return old == MAPPING_FILE || old == MAPPING_MEMORY;
	case MAPPING_EARLY:
		return old == MAPPING_MEMORY || old == MAPPING_EARLY;
	default:
		return true;
	}
}

/* Put @new in where nothing is that it may not cover. */
static int cover_weaker(struct layout *layout, const struct extent *new)
{
	struct extent piece = *new;
	int r;

	for (;;) {
		size_t i = lower_bound(layout, piece.start);
		struct extent stronger;

		while (i < layout->extents.n && covers(new->kind, layout->extents.items[i].kind))
			i++;
		if (i == layout->extents.n || layout->extents.items[i].start > new->last)
			return cover(layout, &piece);

		stronger = layout->extents.items[i];
		if (piece.start < stronger.start) {
			piece.last = stronger.start - 1;
			r = cover(layout, &piece);
			if (r < 0)
				return r;
			piece.last = new->last;
		}
		if (stronger.last >= new->last)
			return 0;
		piece.offset += stronger.last + 1 - piece.start;
		piece.start = stronger.last + 1;
	}
}

static void retire(struct layout *layout, const struct mapping *m)
{
	const uint64_t last = m->start + (m->size - 1);

	for (size_t i = lower_bound(layout, m->start); i < layout->extents.n; i++) {
		struct extent *e = &layout->extents.items[i];

		if (e->start > last)
			return;
		if (e->kind == MAPPING_JIT && e->object == m->retired)
			e->object = m->object;
	}
}

int layout_advance(struct layout *layout)
{
	const struct mapping *m = space_next(layout->space, &layout->place);
	const struct extent new = {
		.start = m->start,
		.last = m->start + (m->size - 1),
		.offset = m->offset,
		.object = m->object,
		.kind = m->kind,
	};
	int r = 0;

	layout->added.n = 0;
	layout->bared = false;
	if (m->kind == MAPPING_RETIRE)
		retire(layout, m);
	else if (m->kind == MAPPING_MEMORY || m->kind == MAPPING_EARLY)
		r = cover_weaker(layout, &new);
	else
		r = cover(layout, &new);
	if (r < 0)
		return r;
	layout->generation++;
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

/* Does @m have, from @start to @last, what @e has there? Up to @left bytes are compared. */
static bool is_same(const struct mapping *m, const struct extent *e, uint64_t start, uint64_t last,
		    uint64_t *left)
{
	const uint64_t at_m = m->offset + (start - m->start), at_e = e->offset + (start - e->start);
	const uint64_t size = last - start + 1;

	if (m->object == e->object)
		return at_m == at_e;
	if (m->object->state != OBJECT_OK || size == 0 || size > *left || at_m >= m->object->size ||
	    size > m->object->size - at_m || at_e >= e->object->size ||
	    size > e->object->size - at_e)
		return false;
	*left -= size;
	return memcmp(m->object->bytes + at_m, e->object->bytes + at_e, size) == 0;
}

/* Add doubts about what @m replaces. @work: so many extents may be looked at; none are left: there are more. */
static int doubt_mapping(struct layout *layout, const struct mapping *m, size_t *work,
			 uint64_t *left)
{
	const uint64_t last = m->start + (m->size - 1);

	for (size_t i = lower_bound(layout, m->start); i<layout->extents.n && * work> 0; i++) {
		const struct extent *e = &layout->extents.items[i];
		struct doubt doubt;
		int r;

		if (e->start > last)
			return 0;
		--*work;
		doubt.start = e->start > m->start ? e->start : m->start;
		doubt.last = e->last < last ? e->last : last;
		if (e->object->state != OBJECT_OK || !covers(m->kind, e->kind) ||
		    is_same(m, e, doubt.start, doubt.last, left))
			continue;
		doubt.start -= doubt.start < REACH ? doubt.start : REACH;
		r = vec_push(&layout->doubts, doubt);
		if (r < 0)
			return r;
	}
	return 0;
}

static int by_start(const void *pa, const void *pb)
{
	const struct doubt *a = pa, *b = pb;

	return a->start < b->start ? -1 : a->start > b->start;
}

/* Sort the doubts, and join those that overlap. */
static void join_doubts(struct layout *layout)
{
	struct doubt *doubts = layout->doubts.items;
	size_t n = 0;

	if (layout->doubts.n > 0)
		qsort(doubts, layout->doubts.n, sizeof(*doubts), by_start);
	for (size_t i = 0; i < layout->doubts.n; i++) {
		if (n == 0 || doubts[i].start > doubts[n - 1].last)
			doubts[n++] = doubts[i];
		else if (doubts[i].last > doubts[n - 1].last)
			doubts[n - 1].last = doubts[i].last;
	}
	layout->doubts.n = n;
}

int layout_doubt(struct layout *layout, size_t until)
{
	struct space_place place = layout->place;
	uint64_t left = COMPARED_MAX;
	size_t work = DOUBTS_MAX;
	int r = 0;

	if (layout->doubted_from == layout->generation && layout->doubted_until == until)
		return 0;
	layout->doubts.n = 0;
	for (size_t i = layout->generation; r == 0 && i < until && work > 0;
	     i++, work -= work > 0) {
		const struct mapping *m = space_next(layout->space, &place);

		if (m->kind != MAPPING_RETIRE)
			r = doubt_mapping(layout, m, &work, &left);
	}
	/* Too much changes: of nothing it is known whether it does. */
	if (r == 0 && work == 0)
		r = vec_push(&layout->doubts, { .last = UINT64_MAX });
	if (r < 0)
		return r;
	join_doubts(layout);
	layout->doubted_from = layout->generation;
	layout->doubted_until = until;
	return 0;
}

int layout_advance_doubting(struct layout *layout, size_t generation)
{
	uint64_t left = ALL_COMPARED_MAX;
	size_t work = ALL_DOUBTS_MAX;
	int r = 0;

	while (r == 0 && layout->generation < generation) {
		struct space_place place = layout->place;
		const struct mapping *m = space_next(layout->space, &place);

		if (m->kind != MAPPING_RETIRE && work > 0)
			r = doubt_mapping(layout, m, &work, &left);
		work -= work > 0;
		if (r == 0)
			r = layout_advance(layout);
	}
	if (r == 0 && work == 0)
		r = vec_push(&layout->doubts, { .last = UINT64_MAX });
	join_doubts(layout);
	return r;
}

bool layout_is_sure(const struct layout *layout, uint64_t address, uint64_t *last)
{
	const size_t i = vec_bisect(&layout->doubts, doubt, doubt->last < address);

	if (i == layout->doubts.n || layout->doubts.items[i].start > *last)
		return true;
	if (layout->doubts.items[i].start <= address)
		return false;
	*last = layout->doubts.items[i].start - 1;
	return true;
}
