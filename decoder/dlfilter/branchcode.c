/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/dlfilter/branchcode.h"

#include <errno.h>
#include <string.h>

#include "decoder/drmemtrace/blockstore.h"
#include "decoder/image/objects.h"
#include "decoder/symbol/resolver.h"
#include "decoder/symbol/source.h"
#include "decoder/x86/insn.h"
#include "util/arena.h"
#include "util/map.h"
#include "util/vec.h"

#define INSN_MAX 15

struct known_object;

/* A function that perf names. */
struct named {
	struct symbol_list list; /* of this one symbol */
	const struct known_object *object;
	uint64_t start, size;
	struct named *next; /* of the same hash */
};

/* What perf calls by one name, with one build-id. */
struct known_object {
	const char *name;
	struct buildid buildid;
	const struct object *object;
	bool is_file; /* it is one that we can read */
	struct known_object *next;
};

struct known_way {
	const struct known_object *object;
	uint64_t address; /* of its first byte in the object */
	uint64_t size;    /* up to the last address */
	bool with_end;
	struct branch_way way;
	struct known_way *next;
};

struct branchcode {
	struct objects *objects;
	struct resolver *resolver;
	struct blockstore store;

	struct arena arena; /* objects and names */
	struct map known;   /* hash → struct known_object */
	struct map named;   /* hash → struct named */
	VEC(struct named *) all_named;
	const struct known_object *last; /* that was asked for; or NULL */

	struct arena way_arena;
	struct map ways; /* hash → struct known_way */
	uint32_t n_ways;

	uint8_t *bytes; /* room for BRANCHCODE_BYTES_MAX and one instruction */
	VEC(struct ptd_run) runs;
};

int branchcode_new(struct objects *objects, struct resolver *resolver, struct branchcode **ret_code)
{
	struct branchcode *code = calloc(1, sizeof(*code));

	if (!code)
		return -ENOMEM;
	code->objects = objects;
	code->resolver = resolver;
	code->bytes = malloc(BRANCHCODE_BYTES_MAX + INSN_MAX);
	if (!code->bytes) {
		branchcode_free(code);
		return -ENOMEM;
	}
	*ret_code = code;
	return 0;
}

struct branchcode *branchcode_free(struct branchcode *code)
{
	if (!code)
		return NULL;
	for (size_t i = 0; i < code->all_named.n; i++)
		symbol_list_deinit(&code->all_named.items[i]->list);
	vec_deinit(&code->all_named);
	map_deinit(&code->known);
	map_deinit(&code->named);
	map_deinit(&code->ways);
	arena_deinit(&code->arena);
	arena_deinit(&code->way_arena);
	blockstore_deinit(&code->store);
	vec_deinit(&code->runs);
	free(code->bytes);
	free(code);
	return NULL;
}

static void *first_of(const struct map *map, uint64_t hash)
{
	const uint64_t *known = map_get(map, hash);

	return known ? (void *)(uintptr_t)*known : NULL;
}

/* --- objects ---------------------------------------------------------------------------------- */

static bool is_object(const struct known_object *known, const struct branch_place *place)
{
	return known->buildid.size == place->buildid.size &&
	       memcmp(known->buildid.bytes, place->buildid.bytes, place->buildid.size) == 0 &&
	       strcmp(known->name, place->object) == 0;
}

/* Find the file, or make an object that only perf knows. */
static int make_object(struct branchcode *code, const struct branch_place *place,
		       struct known_object *known)
{
	struct object *made;
	int r;

	r = objects_find(code->objects, place->object, &place->buildid, &known->object);
	if (r < 0)
		return r;
	known->is_file = known->object->state == OBJECT_OK && known->object->is_elf;
	if (known->is_file)
		return 0;
	r = objects_add_synthetic(code->objects, known->name, &made);
	if (r == 0)
		known->object = made;
	return r;
}

static int find_object(struct branchcode *code, const struct branch_place *place,
		       const struct known_object **ret_known)
{
	struct known_object *known;
	uint64_t hash;
	int r;

	if (code->last && is_object(code->last, place)) {
		*ret_known = code->last;
		return 0;
	}
	hash = map_hash(place->object, strlen(place->object));
	for (known = first_of(&code->known, hash); known && !is_object(known, place);)
		known = known->next;
	if (!known) {
		known = arena_alloc(&code->arena, sizeof(*known));
		if (!known)
			return -ENOMEM;
		known->name = arena_strdup(&code->arena, place->object);
		known->buildid = place->buildid;
		known->next = first_of(&code->known, hash);
		if (!known->name)
			return -ENOMEM;
		r = make_object(code, place, known);
		if (r == 0)
			r = map_put(&code->known, hash, (uintptr_t)known);
		if (r < 0)
			return r;
	}
	*ret_known = code->last = known;
	return 0;
}

/* --- names ------------------------------------------------------------------------------------ */

static int make_named(struct branchcode *code, const struct branch_place *place,
		      struct named **ret_named)
{
	struct named *named = arena_alloc(&code->arena, sizeof(*named));
	size_t size = strlen(place->symbol);
	const char *name;
	int r;

	if (size > UINT16_MAX)
		size = UINT16_MAX;
	name = named ? arena_copy(&code->arena, place->symbol, size) : NULL;
	if (!name)
		return -ENOMEM;
	symbol_list_init(&named->list);
	named->start = place->symbol_start;
	named->size = place->symbol_end - place->symbol_start;
	r = vec_push(&code->all_named, named);
	if (r == 0)
		r = symbol_list_add(&named->list, named->start, named->size, name, (uint16_t)size,
				    NULL);
	*ret_named = named;
	return r;
}

/* Find the symbol at @place by what perf says of it. */
static int find_named(struct branchcode *code, const struct known_object *object,
		      const struct branch_place *place, uint32_t *ret_symbol, uint64_t *ret_end)
{
	const uint64_t key[] = { object->object->id.id, place->symbol_start };
	const uint64_t hash = map_hash(key, sizeof(key));
	struct named *named = first_of(&code->named, hash);
	uint64_t end;
	int r;

	*ret_symbol = PTD_NO_SYMBOL;
	*ret_end = place->address + 1;
	if (!place->symbol || place->symbol_start > place->address ||
	    place->symbol_end <= place->address)
		return 0;
	*ret_end = place->symbol_end;
	while (named && (named->object != object || named->start != place->symbol_start ||
			 named->size != place->symbol_end - place->symbol_start))
		named = named->next;
	if (!named) {
		r = make_named(code, place, &named);
		if (r < 0)
			return r;
		named->object = object;
		named->next = first_of(&code->named, hash);
		r = map_put(&code->named, hash, (uintptr_t)named);
		if (r < 0)
			return r;
	}
	return resolver_find(code->resolver, &named->list.source, place->address, ret_symbol, &end);
}

/* --- ways ------------------------------------------------------------------------------------- */

/* A way that is being found. */
struct search {
	struct branchcode *code;
	const struct branch_memory *memory;
	const struct known_object *object;
	uint64_t start;
	uint64_t link; /* address in the object as the stream shows it = ip + this */
	struct blockstore_draft draft;
	struct branch_way way;
	uint32_t symbol;
	uint64_t symbol_end; /* ip */
};

static int flush_draft(struct search *s)
{
	const struct ptd_block *block;
	int r;

	if (s->draft.n_insns == 0)
		return 0;
	r = blockstore_get(&s->code->store, &s->draft, &block);
	if (r == 0)
		r = vec_push(
		    &s->code->runs,
		    { .block = block, .base = s->draft.pc - s->start, .n = block->n_insns });
	s->draft.n_insns = s->draft.n_bytes = 0;
	return r;
}

static int find_symbol(struct search *s, uint64_t ip)
{
	struct branch_place place;
	uint64_t end;
	int r;

	if (ip < s->symbol_end)
		return 0;
	if (s->object->is_file) {
		r = resolver_find(s->code->resolver, s->object->object->symbols, ip + s->link,
				  &s->symbol, &end);
		s->symbol_end = end - s->link;
		return r;
	}
	s->symbol = PTD_NO_SYMBOL;
	s->symbol_end = ip + 1;
	if (!s->memory->place(s->memory->userdata, ip, &place))
		return 0;
	r = find_named(s->code, s->object, &place, &s->symbol, &end);
	s->symbol_end = end - place.address + ip;
	return r;
}

static int add_insn(struct search *s, uint64_t ip, const uint8_t *bytes, const struct insn *insn)
{
	struct blockstore_draft *draft = &s->draft;
	int r;

	r = find_symbol(s, ip);
	if (r == 0 && draft->n_insns == BLOCKSTORE_INSNS_MAX)
		r = flush_draft(s);
	if (r < 0)
		return r;
	if (draft->n_insns == 0)
		draft->pc = ip;
	draft->insns[draft->n_insns++] = (struct ptd_insn){ .offset = (uint16_t)draft->n_bytes,
							    .size = insn->size,
							    .iclass = insn->class,
							    .symbol = s->symbol };
	memcpy(draft->bytes + draft->n_bytes, bytes, insn->size);
	draft->n_bytes += insn->size;
	draft->target = (int64_t)draft->n_bytes + insn->disp;
	s->way.n_insns++;
	s->way.last_size = insn->size;
	return insn->class == PTD_INSN_OTHER || insn->class == PTD_INSN_PTWRITE ? 0
										: flush_draft(s);
}

/* Return: whether the next instruction in memory can be the next one to execute. */
static bool falls_through(const struct insn *insn)
{
	return insn->class == PTD_INSN_OTHER || insn->class == PTD_INSN_PTWRITE ||
	       insn->class == PTD_INSN_JUMP_COND;
}

/* Decode the @n bytes from the first address on, up to @end. Return: as branchcode_find(). */
static int walk(struct search *s, size_t n, uint64_t end, bool with_end)
{
	uint64_t ip = s->start;
	int r = 0;

	while (r == 0 && (ip < end || (with_end && ip == end))) {
		const uint8_t *bytes = s->code->bytes + (ip - s->start);
		const size_t left = n - (size_t)(ip - s->start);
		struct insn insn;

		if (insn_decode(s->draft.mode, bytes, left, &insn) < 0)
			return left < INSN_MAX ? BRANCHCODE_UNKNOWN : BRANCHCODE_ODD;
		if (ip < end && !falls_through(&insn))
			return BRANCHCODE_ODD;
		r = add_insn(s, ip, bytes, &insn);
		ip += insn.size;
		if (ip > end)
			break;
	}
	if (r < 0)
		return r;
	if (ip != end && !(with_end && ip == end + s->way.last_size))
		return BRANCHCODE_ODD;
	return flush_draft(s);
}

static uint64_t hash_of(const struct known_object *object, uint64_t address, uint64_t size,
			bool with_end)
{
	const uint64_t key[] = { object->object->id.id, address, size << 1 | with_end };

	return map_hash(key, sizeof(key));
}

/* Keep what was found. Return: 0 and @ret_way; or -ENOMEM. */
static int keep_way(struct search *s, uint64_t hash, struct known_way *way,
		    const struct branch_way **ret_way)
{
	struct branchcode *code = s->code;
	struct known_way *kept;
	int r;

	if (code->n_ways == BRANCHCODE_WAYS_MAX) {
		map_deinit(&code->ways);
		arena_deinit(&code->way_arena);
		code->ways = (struct map){};
		code->way_arena = (struct arena){};
		code->n_ways = 0;
	}
	way->way = s->way;
	way->way.n_runs = (uint32_t)code->runs.n;
	way->way.runs = arena_copy(&code->way_arena, code->runs.items,
				   code->runs.n * sizeof(*code->runs.items));
	way->next = first_of(&code->ways, hash);
	kept = way->way.runs ? arena_copy(&code->way_arena, way, sizeof(*way)) : NULL;
	if (!kept)
		return -ENOMEM;
	r = map_put(&code->ways, hash, (uintptr_t)kept);
	code->n_ways++;
	*ret_way = &kept->way;
	return r;
}

/* Return: whether what lies at @start is of the same mapping as @at, which lies at @end. */
static bool is_one_mapping(const struct search *s, uint64_t end, const struct branch_place *at)
{
	struct branch_place place;

	return s->start == end ||
	       (s->memory->place(s->memory->userdata, s->start, &place) && place.object &&
		is_object(s->object, &place) && place.address == at->address - (end - s->start));
}

/* Find the way @way, which is not known. Return: as branchcode_find(). */
static int find_new(struct search *s, uint64_t hash, struct known_way *way, uint8_t mode,
		    const struct branch_way **ret_way)
{
	struct branchcode *code = s->code;
	size_t n;
	int r;

	s->link = way->address - s->start;
	if (s->object->is_file)
		s->link = object_address(s->object->object, way->address) - s->start;
	s->draft.object = &s->object->object->id;
	s->draft.link = s->link;
	s->draft.mode = mode;
	code->runs.n = 0;
	n = s->memory->read(s->memory->userdata, s->start, code->bytes, way->size + INSN_MAX);
	r = walk(s, n, s->start + way->size, way->with_end);
	return r != 0 ? r : keep_way(s, hash, way, ret_way);
}

int branchcode_find(struct branchcode *code, const struct branch_memory *memory, uint64_t start,
		    uint64_t end, bool with_end, const struct branch_place *at,
		    const struct branch_way **ret_way)
{
	struct search s = { .code = code, .memory = memory, .start = start };
	struct known_way new;
	uint64_t hash;
	int r;

	if (!at->object)
		return BRANCHCODE_UNKNOWN;
	if (end < start || end - start > BRANCHCODE_BYTES_MAX)
		return BRANCHCODE_ODD;
	r = find_object(code, at, &s.object);
	if (r < 0)
		return r;
	new = (struct known_way){ .object = s.object,
				  .address = at->address - (end - start),
				  .size = end - start,
				  .with_end = with_end };
	hash = hash_of(s.object, new.address, new.size, with_end);
	for (const struct known_way *way = first_of(&code->ways, hash); way; way = way->next) {
		if (way->object == new.object && way->address == new.address &&
		    way->size == new.size && way->with_end == with_end) {
			*ret_way = &way->way;
			return 0;
		}
	}
	if (!is_one_mapping(&s, end, at))
		return BRANCHCODE_ODD;
	return find_new(&s, hash, &new, at->mode, ret_way);
}

const struct ptd_symbol *const *branchcode_symbols(const struct branchcode *code, size_t *ret_n)
{
	return resolver_symbols(code->resolver, ret_n);
}
