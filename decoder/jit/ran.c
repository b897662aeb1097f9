/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/jit/ran.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "decoder/image/layout.h"

#define COMPARED_PER_WORK 64 /* bytes that count as one piece */

/* Code that jitdumps name, as an object over a log's file: no byte of it has two names. */
struct ran_names {
	const struct codelog *log;
	struct object *object;
	struct symbol_list symbols; /* by offset in the file */
	struct ranges named;        /* of struct named, by offset in the file */
};

struct named {
	struct range range;
	const char *name; /* borrowed from a dump's bytes */
};

struct builder {
	struct rans *rans;
	const struct codelog *log;
	const struct space *before;

	/* Spaces, and what they look like by now: what the mappings say, what the log says (of kind
	 * MEMORY are its first bytes, JIT the changes), and what becomes of both. */
	struct space *said_space, *told_space, *shown_space;
	struct layout said, told, shown;

	VEC(struct extent) wanted; /* in the place of what is shown */
};

/* --- names ------------------------------------------------------------------------------------ */

static struct ran_names *names_free(struct ran_names *names)
{
	if (!names)
		return NULL;
	symbol_list_deinit(&names->symbols);
	ranges_deinit(&names->named);
	free(names);
	return NULL;
}
DEFINE_CLEANUP(struct ran_names *, names_free);

static int names_new(struct rans *rans, const struct codelog *log, struct ran_names **ret_names)
{
	_cleanup_(names_freep) struct ran_names *names = calloc(1, sizeof(*names));
	int r;

	if (!names)
		return -ENOMEM;
	names->log = log;
	symbol_list_init(&names->symbols);
	ranges_init(&names->named, sizeof(struct named));
	r = objects_add_memory(rans->objects, log->object->id.source, "[jit]", 0, &names->object);
	if (r == 0)
		r = vec_push(&rans->names, names);
	if (r < 0)
		return r;
	names->object->symbols = &names->symbols.source;
	*ret_names = TAKE(names);
	return 0;
}

/*
 * Give [@offset, @last] the name of @symbol. Return: 1; 0 if some of it has another name; -ENOMEM.
 */
static int claim_name(struct ran_names *names, uint64_t offset, uint64_t last,
		      const struct symtab_symbol *symbol)
{
	const struct ranges_place place = ranges_find(&names->named, offset);
	const struct named *there = ranges_get(&names->named, place);
	const struct named new = { { offset, last }, symbol->name };
	int r;

	if (there && there->range.start <= last)
		return there->name == symbol->name && there->range.start <= offset &&
		       there->range.last >= last;
	r = ranges_replace(&names->named, place, 0, &new, 1);
	if (r == 0)
		r = symbol_list_add(&names->symbols, offset, last - offset + 1, symbol->name,
				    symbol->name_size);
	return r < 0 ? r : 1;
}

/*
 * Find the symbol that a jitdump gives to the code at @start of @said; NULL if there is none, or
 * @said is not of a jitdump.
 */
static int find_jit_symbol(const struct extent *said, uint64_t start,
			   const struct symtab_symbol **ret_symbol)
{
	uint64_t end;

	*ret_symbol = NULL;
	if ((said->kind != MAPPING_JIT && said->kind != MAPPING_EARLY) || !said->object->symbols)
		return 0;
	return symbol_source_find(said->object->symbols, said->offset + (start - said->start),
				  ret_symbol, &end);
}

/* Let @extent, of the log's bytes, have the name that @said gives to the code there, if that is of
 * a jitdump. Return: 0 or -ENOMEM. */
static int name_extent(struct builder *b, const struct extent *said, struct extent *extent)
{
	const uint64_t last = extent->offset + (extent->last - extent->start);
	const struct symtab_symbol *symbol;
	struct ran_names *names;
	int r;

	r = find_jit_symbol(said, extent->start, &symbol);
	if (r < 0 || !symbol)
		return r;
	for (size_t i = 0; i < b->rans->names.n; i++) {
		names = b->rans->names.items[i];
		if (names->log != b->log)
			continue;
		r = claim_name(names, extent->offset, last, symbol);
		if (r == 1)
			extent->object = names->object;
		if (r != 0)
			return r < 0 ? r : 0;
	}
	r = names_new(b->rans, b->log, &names);
	if (r == 0)
		r = claim_name(names, extent->offset, last, symbol);
	if (r < 0)
		return r;
	extent->object = names->object;
	return 0;
}

/* --- what is to be shown ---------------------------------------------------------------------- */

/* Return: whether more may be looked at. */
static bool take_work(struct builder *b, uint64_t work)
{
	if (b->rans->work < work) {
		b->rans->work = 0;
		return false;
	}
	b->rans->work -= work;
	return true;
}

/* Return: the extent at @at; NULL if nothing is there. @last is cut to where that is so. */
static const struct extent *extent_at(const struct layout *layout, uint64_t at, uint64_t *last)
{
	const struct extent *e = ranges_get(&layout->extents, ranges_find(&layout->extents, at));

	if (e && e->start <= at)
		*last = e->last < *last ? e->last : *last;
	else if (e && e->start <= *last)
		*last = e->start - 1;
	return e && e->start <= at ? e : NULL;
}

static struct extent part_of(const struct extent *extent, uint64_t start, uint64_t last)
{
	struct extent part = *extent;

	part.start = start;
	part.last = last;
	part.offset += start - extent->start;
	part.mark = 0;
	return part;
}

/* Does @object have the bytes of @told at @offset? */
static bool has_bytes(const struct object *object, uint64_t offset, const struct extent *told)
{
	const uint64_t size = told->last - told->start + 1;

	if (told->object->state != OBJECT_OK)
		return object == told->object;
	return object->state == OBJECT_OK && offset < object->size &&
	       size <= object->size - offset &&
	       memcmp(object->bytes + offset, told->object->bytes + told->offset, size) == 0;
}

/* Does @b go on where @a ends? */
static bool continues(const struct extent *a, const struct extent *b)
{
	return a->kind == b->kind && a->object == b->object && a->last + 1 == b->start &&
	       b->offset - a->offset == b->start - a->start;
}

static bool is_shown(const struct builder *b, const struct extent *wanted)
{
	uint64_t last = wanted->last;
	const struct extent *e = extent_at(&b->shown, wanted->start, &last);

	return e && last == wanted->last && e->kind == wanted->kind &&
	       e->object == wanted->object &&
	       e->offset - e->start == wanted->offset - wanted->start;
}

static int want(struct builder *b, const struct extent *wanted)
{
	struct extent *before = b->wanted.n > 0 ? &b->wanted.items[b->wanted.n - 1] : NULL;

	if (is_shown(b, wanted))
		return 0;
	if (!before || !continues(before, wanted))
		return vec_push(&b->wanted, *wanted);
	before->last = wanted->last;
	return 0;
}

/*
 * Decide what is to be shown from @start to @last, where what is @said and @told, each of which may
 * be NULL, does not change. Of a file that is mapped the first bytes of the log say nothing.
 */
static int decide(struct builder *b, const struct extent *said, const struct extent *told,
		  uint64_t start, uint64_t last)
{
	struct extent part;
	int r = 0;

	if (told && told->kind == MAPPING_MEMORY && (!said || said->kind == MAPPING_FILE))
		told = NULL;
	if (!said && !told)
		return 0;
	part = part_of(told ?: said, start, last);
	if (told && said && has_bytes(said->object, said->offset + (start - said->start), &part))
		part = part_of(said, start, last);
	else if (told)
		part.kind = MAPPING_RAN;
	if (part.kind == MAPPING_RAN && said && part.object == b->log->object)
		r = name_extent(b, said, &part);
	return r < 0 ? r : want(b, &part);
}

/* --- the space -------------------------------------------------------------------------------- */

static int map(struct space *space, struct layout *layout, const struct mapping *mapping)
{
	const int r = space_map(space, mapping);

	return r < 0 ? r : layout_advance(layout);
}

static int show(struct builder *b, uint64_t time)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < b->wanted.n; i++) {
		const struct extent *e = &b->wanted.items[i];

		r = map(b->shown_space, &b->shown,
			&(struct mapping){ .time = time,
					   .kind = e->kind,
					   .start = e->start,
					   .size = e->last - e->start + 1,
					   .offset = e->offset,
					   .object = e->object });
	}
	b->wanted.n = 0;
	return r;
}

/* Something was said or told of what is from @start to @last. */
static int update(struct builder *b, uint64_t time, uint64_t start, uint64_t last)
{
	uint64_t end;
	int r = 0;

	for (;; start = end + 1) {
		const struct extent *said, *told;

		end = last;
		said = extent_at(&b->said, start, &end);
		told = extent_at(&b->told, start, &end);
		if (!take_work(b, 1 + (told && said ? (end - start) / COMPARED_PER_WORK : 0)))
			return 0;
		r = decide(b, said, told, start, end);
		if (r < 0 || end == last)
			break;
	}
	return r < 0 ? r : show(b, time);
}

static int apply_mapping(struct builder *b, const struct mapping *mapping)
{
	int r;

	r = map(b->said_space, &b->said, mapping);
	if (r < 0)
		return r;
	if (mapping->kind == MAPPING_RETIRE)
		return update(b, mapping->time, mapping->start,
			      mapping->start + (mapping->size - 1));
	for (size_t i = 0; r == 0 && i < b->said.added.n; i++)
		r = update(b, mapping->time, b->said.added.items[i].start,
			   b->said.added.items[i].last);
	return r;
}

static int apply_piece(struct builder *b, const struct codelog_piece *piece, uint64_t begin)
{
	int r;

	r = map(b->told_space, &b->told,
		&(struct mapping){ .time = piece->time,
				   .kind = piece->time ? MAPPING_JIT : MAPPING_MEMORY,
				   .start = piece->start,
				   .size = piece->last - piece->start + 1,
				   .offset = piece->offset,
				   .object = piece->offset ? b->log->object : b->rans->unknown });
	/* Before the first mapping there is no time to show it at: it is shown with that. */
	if (r < 0 || piece->time < begin || piece->time == 0)
		return r;
	return update(b, piece->time, piece->start, piece->last);
}

/* Too much has been looked at: from @time on no code is known. */
static int give_up(struct builder *b, uint64_t time)
{
	return map(b->shown_space, &b->shown,
		   &(struct mapping){ .time = time,
				      .kind = MAPPING_RAN,
				      .size = UINT64_MAX,
				      .object = b->rans->unknown });
}

static int merge(struct builder *b)
{
	const struct codelog_piece *pieces = b->log->pieces.list.items;
	const size_t n_pieces = b->log->pieces.list.n;
	const size_t n = space_n_own(b->before, UINT64_MAX);
	const uint64_t begin = n > 0 ? space_mapping(b->before, 0)->time : 0;
	size_t i = 0, next = 0;
	uint64_t time = 0;
	int r = 0;

	while (r == 0 && (i < n || next < n_pieces) && b->rans->work > 0) {
		const struct mapping *m = i < n ? space_mapping(b->before, i) : NULL;

		if (m &&
		    (next == n_pieces || (pieces[next].time > 0 && m->time <= pieces[next].time))) {
			time = m->time;
			r = apply_mapping(b, m);
			i++;
		} else {
			if (pieces[next].time > time && pieces[next].time >= begin)
				time = pieces[next].time;
			r = apply_piece(b, &pieces[next], begin);
			next++;
		}
	}
	return r == 0 && b->rans->work == 0 ? give_up(b, time) : r;
}

int rans_apply(struct rans *rans, struct space *space, const struct codelog *log)
{
	struct builder b = { .rans = rans, .log = log, .before = space };
	int r;

	r = space_new(space_id(space), NULL, 0, &b.said_space);
	if (r == 0)
		r = space_new(space_id(space), NULL, 0, &b.told_space);
	if (r == 0)
		r = space_new(space_id(space), NULL, 0, &b.shown_space);
	layout_init(&b.said, b.said_space);
	layout_init(&b.told, b.told_space);
	layout_init(&b.shown, b.shown_space);
	if (r == 0)
		r = merge(&b);
	layout_deinit(&b.said);
	layout_deinit(&b.told);
	layout_deinit(&b.shown);
	if (r == 0)
		space_replace(space, b.shown_space);
	(void)space_free(b.said_space);
	(void)space_free(b.told_space);
	(void)space_free(b.shown_space);
	vec_deinit(&b.wanted);
	return r;
}

int rans_init(struct rans *rans, struct objects *objects)
{
	*rans = (struct rans){ .objects = objects, .work = RAN_WORK_MAX };
	return objects_find(objects, "//anon", NULL, &rans->unknown);
}

void rans_deinit(struct rans *rans)
{
	for (size_t i = 0; i < rans->names.n; i++)
		(void)names_free(rans->names.items[i]);
	vec_deinit(&rans->names);
}
