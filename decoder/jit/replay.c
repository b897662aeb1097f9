/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/jit/replay.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "decoder/image/layout.h"

#define COMPARED_PER_WORK 64 /* bytes that count as one piece */

/* An object over a log's file, for code that jitdumps name. No byte of it has two names. */
struct replay_names {
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
	struct replay *replay;
	const struct codelog *log;
	const struct space *before;

	/*
	 * Four spaces, and the layout of each at the time that the replay has reached: the mappings
	 * alone; those of files alone; the log alone (its first bytes are of the kind MEMORY, its
	 * changes of the kind JIT); and the result of all.
	 */
	struct space *mapped_space, *filed_space, *logged_space, *result_space;
	struct layout mapped, filed, logged, result;

	VEC(struct extent) remapped; /* what is to be mapped in the result next */
};

/* --- names ------------------------------------------------------------------------------------ */

static struct replay_names *replay_names_free(struct replay_names *names)
{
	if (!names)
		return NULL;
	symbol_list_deinit(&names->symbols);
	ranges_deinit(&names->named);
	free(names);
	return NULL;
}
DEFINE_CLEANUP(struct replay_names *, replay_names_free);

static int replay_names_new(struct replay *replay, const struct codelog *log,
			    struct replay_names **ret_names)
{
	_cleanup_(replay_names_freep) struct replay_names *names = calloc(1, sizeof(*names));
	int r;

	if (!names)
		return -ENOMEM;
	names->log = log;
	symbol_list_init(&names->symbols);
	ranges_init(&names->named, sizeof(struct named));
	r = objects_share(replay->objects, log->object, true, "[jit]", &names->object);
	if (r == 0)
		r = vec_push(&replay->names, names);
	if (r < 0)
		return r;
	names->object->symbols = &names->symbols.source;
	*ret_names = TAKE(names);
	return 0;
}

/*
 * Give [@offset, @last] the name of @symbol. Return: 1; 0 if some of it has another name; -ENOMEM.
 */
static int claim_name(struct replay_names *names, uint64_t offset, uint64_t last,
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
				    symbol->name_size, symbol->jit);
	return r < 0 ? r : 1;
}

/*
 * Find the symbol that a jitdump gives to the code at @start of @mapped; NULL if there is none, or
 * @mapped is not of a jitdump.
 */
static int find_jit_symbol(const struct extent *mapped, uint64_t start,
			   const struct symtab_symbol **ret_symbol)
{
	uint64_t end;

	*ret_symbol = NULL;
	if ((mapped->kind != MAPPING_JIT && mapped->kind != MAPPING_EARLY) ||
	    !mapped->object->symbols)
		return 0;
	return symbol_source_find(mapped->object->symbols, mapped->offset + (start - mapped->start),
				  ret_symbol, &end);
}

/*
 * If @mapped is of a jitdump, let @extent, which has the log's bytes, have the name that the
 * jitdump gives to the code there. Return: 0 or -ENOMEM.
 */
static int name_extent(struct builder *b, const struct extent *mapped, struct extent *extent)
{
	const uint64_t last = extent->offset + (extent->last - extent->start);
	const struct symtab_symbol *symbol;
	struct replay_names *names;
	int r;

	r = find_jit_symbol(mapped, extent->start, &symbol);
	if (r < 0 || !symbol)
		return r;
	for (size_t i = 0; i < b->replay->names.n; i++) {
		names = b->replay->names.items[i];
		if (names->log != b->log)
			continue;
		r = claim_name(names, extent->offset, last, symbol);
		if (r == 1)
			extent->object = names->object;
		if (r != 0)
			return r < 0 ? r : 0;
	}
	r = replay_names_new(b->replay, b->log, &names);
	if (r == 0)
		r = claim_name(names, extent->offset, last, symbol);
	if (r < 0)
		return r;
	extent->object = names->object;
	return 0;
}

/*
 * --- which of the two counts
 * ----------------------------------------------------------------------
 */

/* Return: whether the limit of work is not reached. */
static bool charge_replay(struct builder *b, uint64_t work)
{
	if (b->replay->work < work) {
		b->replay->work = 0;
		return false;
	}
	b->replay->work -= work;
	return true;
}

/* Return: the extent at @at, or NULL. *@last is cut to the last address for which that holds. */
static const struct extent *extent_at(const struct layout *layout, uint64_t at, uint64_t *last)
{
	const struct extent *e = ranges_get(&layout->extents, ranges_find(&layout->extents, at));

	if (e && e->start <= at)
		*last = e->last < *last ? e->last : *last;
	else if (e && e->start <= *last)
		*last = e->start - 1;
	return e && e->start <= at ? e : NULL;
}

static struct extent extent_part(const struct extent *extent, uint64_t start, uint64_t last)
{
	struct extent part = *extent;

	part.start = start;
	part.last = last;
	part.offset += start - extent->start;
	return part;
}

/* Return: whether @object has, at @offset, the same bytes as @logged. */
static bool has_logged_bytes(const struct object *object, uint64_t offset,
			     const struct extent *logged)
{
	const uint64_t size = logged->last - logged->start + 1;
	const uint8_t *bytes, *of_log;

	if (logged->object->state != OBJECT_OK)
		return object == logged->object;
	bytes = object_bytes(object, offset, size);
	of_log = object_bytes(logged->object, logged->offset, size);
	return bytes && of_log && memcmp(bytes, of_log, size) == 0;
}

/* Return: whether @b begins where @a ends, in memory and in the object. */
static bool is_continued_by(const struct extent *a, const struct extent *b)
{
	return a->kind == b->kind && a->object == b->object && a->last + 1 == b->start &&
	       b->offset - a->offset == b->start - a->start;
}

static bool is_in_result(const struct builder *b, const struct extent *remapped)
{
	uint64_t last = remapped->last;
	const struct extent *e = extent_at(&b->result, remapped->start, &last);

	return e && last == remapped->last && e->kind == remapped->kind &&
	       e->object == remapped->object &&
	       e->offset - e->start == remapped->offset - remapped->start;
}

static int remap(struct builder *b, const struct extent *remapped)
{
	struct extent *before = b->remapped.n > 0 ? &b->remapped.items[b->remapped.n - 1] : NULL;

	if (is_in_result(b, remapped))
		return 0;
	if (!before || !is_continued_by(before, remapped))
		return vec_push(&b->remapped, *remapped);
	before->last = remapped->last;
	return 0;
}

/* Return: what is at @logged, a part of the log: code of @filed, if it has the same bytes. */
static struct extent logged_part(const struct extent *filed, const struct extent *logged)
{
	const uint64_t offset = filed ? filed->offset + (logged->start - filed->start) : 0;
	struct extent part = *logged;

	if (filed && has_logged_bytes(filed->object, offset, logged))
		part = extent_part(filed, logged->start, logged->last);
	part.kind = MAPPING_LOGGED;
	return part;
}

/*
 * Decide what is in the result from @start to @last, where @mapped is mapped and @logged is in the
 * log; each may be NULL. Where a file is mapped, the first bytes of the log do not count: they may
 * be of memory that was there before the file or after it. Some programs move their code into
 * memory at the same addresses, to have it in large pages: where the log has the bytes of @filed,
 * the file that was mapped there before, it is that file's code. @filed may be NULL.
 */
static int decide(struct builder *b, const struct extent *mapped, const struct extent *logged,
		  const struct extent *filed, uint64_t start, uint64_t last)
{
	struct extent part;
	int r = 0;

	if (logged && logged->kind == MAPPING_MEMORY && (!mapped || mapped->kind == MAPPING_FILE))
		logged = NULL;
	if (!mapped && !logged)
		return 0;
	part = extent_part(logged ?: mapped, start, last);
	if (logged && mapped &&
	    has_logged_bytes(mapped->object, mapped->offset + (start - mapped->start), &part))
		part = extent_part(mapped, start, last);
	else if (logged)
		part = logged_part(filed, &part);
	if (logged && part.object->proven)
		part.object = part.object->proven;
	if (part.kind == MAPPING_LOGGED && mapped && logged && part.object == logged->object &&
	    part.object != b->replay->unknown)
		r = name_extent(b, mapped, &part);
	return r < 0 ? r : remap(b, &part);
}

/* --- the space -------------------------------------------------------------------------------- */

static int map_now(struct space *space, struct layout *layout, const struct mapping *mapping)
{
	const int r = space_map(space, mapping);

	return r < 0 ? r : layout_advance(layout);
}

static int map_result(struct builder *b, uint64_t time)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < b->remapped.n; i++) {
		const struct extent *e = &b->remapped.items[i];

		r = map_now(b->result_space, &b->result,
			    &(struct mapping){ .time = time,
					       .kind = e->kind,
					       .start = e->start,
					       .size = e->last - e->start + 1,
					       .offset = e->offset,
					       .object = e->object });
	}
	b->remapped.n = 0;
	return r;
}

/* The mappings or the log have changed from @start to @last. */
static int update_result(struct builder *b, uint64_t time, uint64_t start, uint64_t last)
{
	uint64_t end;
	int r = 0;

	for (;; start = end + 1) {
		const struct extent *mapped, *logged, *filed = NULL;

		end = last;
		mapped = extent_at(&b->mapped, start, &end);
		logged = extent_at(&b->logged, start, &end);
		if (logged && mapped && mapped->kind == MAPPING_MEMORY)
			filed = extent_at(&b->filed, start, &end);
		if (!charge_replay(b,
				   1 + (logged && mapped ? (end - start) / COMPARED_PER_WORK : 0)))
			return 0;
		r = decide(b, mapped, logged, filed, start, end);
		if (r < 0 || end == last)
			break;
	}
	return r < 0 ? r : map_result(b, time);
}

static int apply_mapping(struct builder *b, const struct mapping *mapping)
{
	int r;

	r = map_now(b->mapped_space, &b->mapped, mapping);
	if (r < 0)
		return r;
	if (mapping->kind == MAPPING_FILE && mapping->object->state == OBJECT_OK)
		r = map_now(b->filed_space, &b->filed, mapping);
	if (r < 0)
		return r;
	if (mapping->kind == MAPPING_RETIRE)
		return update_result(b, mapping->time, mapping->start,
				     mapping->start + (mapping->size - 1));
	for (size_t i = 0; r == 0 && i < b->mapped.added.n; i++)
		r = update_result(b, mapping->time, b->mapped.added.items[i].start,
				  b->mapped.added.items[i].last);
	return r;
}

static int apply_piece(struct builder *b, const struct codelog_piece *piece, uint64_t begin)
{
	int r;

	r = map_now(b->logged_space, &b->logged,
		    &(struct mapping){ .time = piece->time,
				       .kind = piece->time ? MAPPING_JIT : MAPPING_MEMORY,
				       .start = piece->start,
				       .size = piece->last - piece->start + 1,
				       .offset = piece->offset,
				       .object = piece->offset == 0 ? b->replay->unknown
						 : piece->is_last   ? b->log->last_object
								    : b->log->object });
	/* What was logged before the first mapping is mapped together with that mapping. */
	if (r < 0 || piece->time < begin || piece->time == 0)
		return r;
	return update_result(b, piece->time, piece->start, piece->last);
}

/* The limit of work is reached: from @time on no code is known. */
static int end_replay(struct builder *b, uint64_t time)
{
	return map_now(b->result_space, &b->result,
		       &(struct mapping){ .time = time,
					  .kind = MAPPING_LOGGED,
					  .size = UINT64_MAX,
					  .object = b->replay->unknown });
}

static int merge_log(struct builder *b)
{
	const struct codelog_piece *pieces = b->log->pieces.list.items;
	const size_t n_pieces = b->log->pieces.list.n;
	const size_t n = space_n_own(b->before, UINT64_MAX);
	const uint64_t begin = n > 0 ? space_mapping(b->before, 0)->time : 0;
	size_t i = 0, next = 0;
	uint64_t time = 0;
	int r = 0;

	while (r == 0 && (i < n || next < n_pieces) && b->replay->work > 0) {
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
	return r == 0 && b->replay->work == 0 ? end_replay(b, time) : r;
}

int replay_log(struct replay *replay, struct space *space, const struct codelog *log)
{
	struct builder b = { .replay = replay, .log = log, .before = space };
	int r;

	r = space_new(space_id(space), NULL, 0, &b.mapped_space);
	if (r == 0)
		r = space_new(space_id(space), NULL, 0, &b.filed_space);
	if (r == 0)
		r = space_new(space_id(space), NULL, 0, &b.logged_space);
	if (r == 0)
		r = space_new(space_id(space), NULL, 0, &b.result_space);
	layout_init(&b.mapped, b.mapped_space);
	layout_init(&b.filed, b.filed_space);
	layout_init(&b.logged, b.logged_space);
	layout_init(&b.result, b.result_space);
	if (r == 0)
		r = merge_log(&b);
	layout_deinit(&b.mapped);
	layout_deinit(&b.filed);
	layout_deinit(&b.logged);
	layout_deinit(&b.result);
	if (r == 0)
		space_replace(space, b.result_space);
	(void)space_free(b.mapped_space);
	(void)space_free(b.filed_space);
	(void)space_free(b.logged_space);
	(void)space_free(b.result_space);
	vec_deinit(&b.remapped);
	return r;
}

int replay_init(struct replay *replay, struct objects *objects)
{
	*replay = (struct replay){ .objects = objects, .work = REPLAY_WORK_MAX };
	return objects_find(objects, "//anon", NULL, &replay->unknown);
}

void replay_deinit(struct replay *replay)
{
	vec_deinit_each(&replay->names, names, replay_names_free(*names));
}
