/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/image/layout.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static_assert(offsetof(struct extent, start) == offsetof(struct range, start) &&
		  offsetof(struct extent, last) == offsetof(struct range, last),
	      "it is a range");

/*
 * How many mappings, and extents below them, one call looks at for doubts; and how many bytes of
 * them it compares.
 */
#define DOUBTS_MAX   4096
#define COMPARED_MAX (UINT64_C(1) << 14)

/* The same for layout_advance_doubting(). */
#define ALL_DOUBTS_MAX   (1u << 22)
#define ALL_COMPARED_MAX (UINT64_C(1) << 30)

/* How far before code that is in doubt an instruction may begin and still reach into it. */
#define REACH 14

void layout_init(struct layout *layout, const struct space *space)
{
	*layout = (struct layout){ .space = space, .work = LAYOUT_WORK_MIN };
	ranges_init(&layout->extents, sizeof(struct extent));
}

void layout_deinit(struct layout *layout)
{
	ranges_deinit(&layout->extents);
	vec_deinit(&layout->added);
	vec_deinit(&layout->doubts);
}

/* Insert @new over all that is there. */
static int cover(struct layout *layout, const struct extent *new)
{
	const struct ranges_place from = ranges_find(&layout->extents, new->start);
	/* What stays of the first covered extent, the new one, what stays of the last. */
	struct extent pieces[3];
	size_t n_pieces = 0, n_old = 0;
	struct extent last = {};
	const struct extent *e;
	int r;

	for (struct ranges_place at = from;
	     (e = ranges_get(&layout->extents, at)) && e->start <= new->last;
	     at = ranges_next(&layout->extents, at)) {
		if (n_old++ == 0 && e->start < new->start) {
			pieces[n_pieces] = *e;
			pieces[n_pieces++].last = new->start - 1;
		}
		last = *e;
	}
	pieces[n_pieces++] = *new;
	if (n_old > 0 && last.last > new->last) {
		last.offset += new->last + 1 - last.start;
		last.start = new->last + 1;
		pieces[n_pieces++] = last;
	}

	r = ranges_replace(&layout->extents, from, n_old, pieces, n_pieces);
	return r < 0 ? r : vec_push(&layout->added, *new);
}

static bool covers(enum mapping_kind new, enum mapping_kind old)
{
	switch (new) {
	case MAPPING_MEMORY:
		return old == MAPPING_FILE || old == MAPPING_MEMORY || old == MAPPING_LOGGED;
	case MAPPING_EARLY:
		return old == MAPPING_MEMORY || old == MAPPING_EARLY || old == MAPPING_LOGGED;
	default:
		return true;
	}
}

/*
 * Return: whether @new changes nothing where @old is. (JIT compilers map the same memory again and
 * again.)
 */
static bool changes_nothing(const struct extent *new, const struct extent *old)
{
	return new->kind == old->kind &&new->object == old->object &&
	       (new->object->state != OBJECT_OK ||
		new->offset - new->start == old->offset - old->start);
}

/* Return: whether the limit of work is not reached. */
static bool charge_layout(struct layout *layout, uint64_t work)
{
	if (layout->work < work)
		return false;
	layout->work -= work;
	return true;
}

/*
 * Find the next extent from @address up to @last that @new may not cover.
 *
 * Return: false if the limit of work is reached; else true, and @ret_found, NULL if there is none.
 */
static bool find_stronger(struct layout *layout, const struct extent *new, uint64_t address,
			  const struct extent **ret_found)
{
	const struct extent *e;

	for (struct ranges_place at = ranges_find(&layout->extents, address);
	     (e = ranges_get(&layout->extents, at)) && e->start <= new->last;
	     at = ranges_next(&layout->extents, at)) {
		if (!charge_layout(layout, 1))
			return false;
		if (!covers(new->kind, e->kind) || changes_nothing(new, e)) {
			*ret_found = e;
			return true;
		}
	}
	*ret_found = NULL;
	return true;
}

/* Insert @new where there is no extent that it may not cover. */
static int cover_weaker(struct layout *layout, const struct extent *new)
{
	struct extent piece = *new;
	const struct extent *found;
	int r;

	while (find_stronger(layout, new, piece.start, &found) &&
	       charge_layout(layout, LAYOUT_WORK_COVER)) {
		struct extent stronger;

		if (!found)
			return cover(layout, &piece);

		stronger = *found;
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
	/* The rest is not known any more: it is mapped to behind the end of the object. */
	piece.offset = piece.object->size;
	return cover(layout, &piece);
}

static void retire_extents(struct layout *layout, const struct mapping *m)
{
	const uint64_t last = m->start + (m->size - 1);
	struct extent *e;

	for (struct ranges_place at = ranges_find(&layout->extents, m->start);
	     (e = ranges_get(&layout->extents, at)) && e->start <= last;
	     at = ranges_next(&layout->extents, at))
		if (e->kind == MAPPING_JIT && e->object == m->retired)
			e->object = m->object;
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
	layout->hint = NULL;
	layout->work += LAYOUT_WORK_PER_MAPPING;
	if (m->kind == MAPPING_RETIRE)
		retire_extents(layout, m);
	else if (m->kind == MAPPING_MEMORY || m->kind == MAPPING_EARLY)
		r = cover_weaker(layout, &new);
	else
		r = cover(layout, &new);
	if (r < 0)
		return r;
	layout->generation++;
	return 0;
}

/* Return: the extent at @address; NULL if nothing is mapped. */
static struct extent *extent_of(const struct layout *layout, uint64_t address)
{
	struct extent *e = ranges_get(&layout->extents, ranges_find(&layout->extents, address));

	return e && e->start <= address ? e : NULL;
}

const struct extent *layout_find(struct layout *layout, uint64_t address)
{
	const struct extent *hint = __atomic_load_n(&layout->hint, __ATOMIC_RELAXED);

	if (!hint || address < hint->start || hint->last < address) {
		hint = extent_of(layout, address);
		__atomic_store_n(&layout->hint, hint, __ATOMIC_RELAXED);
	}
	return hint;
}

/*
 * Return: whether @m has from @start to @last the same bytes as @e. Up to *@left bytes are
 * compared.
 */
static bool is_same(const struct mapping *m, const struct extent *e, uint64_t start, uint64_t last,
		    uint64_t *left)
{
	const uint64_t at_m = m->offset + (start - m->start), at_e = e->offset + (start - e->start);
	const uint64_t size = last - start + 1;
	const uint8_t *of_m, *of_e;

	if (m->object == e->object)
		return at_m == at_e;
	if (size == 0 || size > *left)
		return false;
	of_m = object_bytes(m->object, at_m, size);
	of_e = object_bytes(e->object, at_e, size);
	if (!of_m || !of_e)
		return false;
	*left -= size;
	return memcmp(of_m, of_e, size) == 0;
}

/*
 * Return: whether it may be in doubt when @m replaced other code. It is not where a code log was
 * replayed: the software source writes the time before changed code runs.
 */
static bool raises_doubts(const struct layout *layout, const struct mapping *m)
{
	return m->kind == MAPPING_FILE ||
	       (m->kind != MAPPING_RETIRE && !space_is_exact(layout->space));
}

/*
 * Add doubts about code that @m replaces. @work: how many extents may still be looked at; 0
 * afterwards means that there are more.
 */
static int doubt_mapping(struct layout *layout, const struct mapping *m, size_t *work,
			 uint64_t *left)
{
	const uint64_t last = m->start + (m->size - 1);

	for (struct ranges_place at = ranges_find(&layout->extents, m->start); *work > 0;
	     at = ranges_next(&layout->extents, at)) {
		const struct extent *e = ranges_get(&layout->extents, at);
		struct doubt doubt;
		int r;

		if (!e || e->start > last)
			return 0;
		--*work;
		doubt.start = e->start > m->start ? e->start : m->start;
		doubt.last = e->last < last ? e->last : last;
		/* A missing file had code, too. Memory that never was a file has no known code. */
		if (e->object->state == OBJECT_NO_FILE || !covers(m->kind, e->kind) ||
		    is_same(m, e, doubt.start, doubt.last, left))
			continue;
		doubt.start -= doubt.start < REACH ? doubt.start : REACH;
		r = vec_push(&layout->doubts, doubt);
		if (r < 0)
			return r;
	}
	return 0;
}

static int compare_doubts(const void *pa, const void *pb)
{
	const struct doubt *a = pa, *b = pb;

	return COMPARE(a->start, b->start);
}

/* Sort the doubts, and join those that overlap. */
static void join_doubts(struct layout *layout)
{
	struct doubt *doubts = layout->doubts.items;
	size_t n = 0;

	vec_sort(&layout->doubts, compare_doubts);
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

		if (raises_doubts(layout, m))
			r = doubt_mapping(layout, m, &work, &left);
	}
	/* Too much changes: all code is in doubt. */
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

		if (raises_doubts(layout, m) && work > 0)
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
