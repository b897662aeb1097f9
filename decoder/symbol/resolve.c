/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/symbol/resolve.h"

#include <errno.h>
#include <string.h>

#include "decoder/symbol/debugfile.h"
#include "decoder/symbol/demangle.h"
#include "decoder/symbol/elfsym.h"
#include "decoder/symbol/jitsym.h"
#include "decoder/symbol/kallsyms.h"
#include "decoder/symbol/perfmap.h"
#include "decoder/symbol/symtab.h"
#include "util/arena.h"
#include "util/vec.h"

#define PLT_SUFFIX "@plt"

/* Of all perf maps together; a large program's has a million. */
#define PERFMAP_LINES_MAX ((size_t)1 << 23)

/* The symbols of one object, and the ids of those that were asked for (0: not yet). */
struct table {
	struct symtab symtab;
	struct mapfile debug; /* its debug file, whose names symtab borrows; often none */
	uint32_t *ids;        /* by index in symtab.symbols */
};

/* What was parsed of files that several objects share. */
struct shared {
	const struct mapfile *file;
	struct perfmap perfmap;
	struct kallsyms kallsyms;
};

struct resolver {
	struct arena arena; /* names, tables, ids, places, what is shared */
	struct debugfile_places places;
	bool wants_debug_files;
	VEC(struct table *) tables;             /* by object id; NULL until it is asked for */
	VEC(const struct ptd_symbol *) symbols; /* the arena's, but for the first */
	VEC(struct shared *) shared;
	size_t n_perfmap_lines; /* that may still be parsed */
};

/* Return: 0 or -ENOMEM; what is NULL stays NULL. */
static int copy(struct resolver *resolver, const char *string, const char **ret_copy)
{
	*ret_copy = string ? arena_strdup(&resolver->arena, string) : NULL;
	return string && !*ret_copy ? -ENOMEM : 0;
}

static int copy_places(struct resolver *resolver, const struct debugfile_places *places)
{
	struct debugfile_places *own = &resolver->places;
	const char **dirs = arena_alloc(&resolver->arena, places->n_dirs * sizeof(*dirs));
	int r = dirs ? 0 : -ENOMEM;

	for (size_t i = 0; i < places->n_dirs && r == 0; i++)
		r = copy(resolver, places->dirs[i], &dirs[i]);
	*own = (struct debugfile_places){ .dirs = dirs,
					  .n_dirs = places->n_dirs,
					  .fetch = places->fetch };
	if (r == 0)
		r = copy(resolver, places->snapshot, &own->snapshot);
	if (r == 0)
		r = copy(resolver, places->buildid_dir, &own->buildid_dir);
	if (r == 0)
		r = copy(resolver, places->symfs, &own->symfs);
	resolver->wants_debug_files = r == 0;
	return r;
}

static void table_deinit(struct table *table)
{
	symtab_deinit(&table->symtab);
	mapfile_deinit(&table->debug);
}

/* The symbol with the id PTD_NO_SYMBOL. */
static const struct ptd_symbol none = { .name = "" };

int resolver_new(const struct debugfile_places *places, struct resolver **ret_resolver)
{
	_cleanup_(resolver_freep) struct resolver *resolver = calloc(1, sizeof(*resolver));
	int r;

	if (!resolver)
		return -ENOMEM;
	resolver->n_perfmap_lines = PERFMAP_LINES_MAX;
	r = vec_push(&resolver->symbols, &none);
	if (r == 0 && places)
		r = copy_places(resolver, places);
	if (r < 0)
		return r;
	*ret_resolver = TAKE(resolver);
	return 0;
}

struct resolver *resolver_free(struct resolver *resolver)
{
	if (!resolver)
		return NULL;
	for (size_t i = 0; i < resolver->tables.n; i++)
		if (resolver->tables.items[i])
			table_deinit(resolver->tables.items[i]);
	vec_deinit(&resolver->tables);
	for (size_t i = 0; i < resolver->shared.n; i++) {
		perfmap_deinit(&resolver->shared.items[i]->perfmap);
		kallsyms_deinit(&resolver->shared.items[i]->kallsyms);
	}
	vec_deinit(&resolver->shared);
	vec_deinit(&resolver->symbols);
	arena_deinit(&resolver->arena);
	free(resolver);
	return NULL;
}

/* Its debug file comes first: stubs of the PLT may be called after symbols that only that has. */
static int read_symbols(const struct resolver *resolver, const struct object *object,
			struct table *table)
{
	int r = 0;

	if (object->state != OBJECT_OK || !object->is_elf)
		return 0;
	if (resolver->wants_debug_files && debugfile_find(&resolver->places, object, &table->debug))
		r = elfsym_read(&table->symtab, table->debug.bytes, table->debug.size);
	return r < 0 ? r : elfsym_read(&table->symtab, object->bytes, object->size);
}

/* What is known of @file. Return: NULL if nothing is yet. */
static struct shared *find_shared(const struct resolver *resolver, const struct mapfile *file)
{
	for (size_t i = 0; i < resolver->shared.n; i++)
		if (resolver->shared.items[i]->file == file)
			return resolver->shared.items[i];
	return NULL;
}

/* Make it, with nothing parsed yet. */
static int add_shared(struct resolver *resolver, const struct mapfile *file,
		      struct shared **ret_shared)
{
	struct shared *shared = arena_alloc(&resolver->arena, sizeof(*shared));
	int r;

	if (!shared)
		return -ENOMEM;
	*shared = (struct shared){ .file = file };
	r = vec_push(&resolver->shared, shared);
	if (r == 0)
		*ret_shared = shared;
	return r;
}

static int read_jit(struct resolver *resolver, const struct object *object, struct symtab *symtab)
{
	const struct mapfile *file = object->perf_map;
	struct shared *shared = file ? find_shared(resolver, file) : NULL;
	int r = 0;

	if (file && !shared) {
		r = add_shared(resolver, file, &shared);
		if (r == 0)
			r = perfmap_parse(file, &resolver->n_perfmap_lines, &shared->perfmap);
	}
	return r < 0 ? r : jitsym_read(symtab, object, shared ? &shared->perfmap : NULL);
}

static int read_kernel(struct resolver *resolver, const struct object *object,
		       struct symtab *symtab)
{
	const struct mapfile *file = object->kallsyms;
	struct shared *shared = file ? find_shared(resolver, file) : NULL;
	int r = 0;

	if (!file)
		return 0;
	if (!shared) {
		r = add_shared(resolver, file, &shared);
		if (r == 0)
			r = kallsyms_parse(file, &shared->kallsyms);
	}
	return r < 0 ? r : kallsyms_read(symtab, object, &shared->kallsyms);
}

static int add_function(struct symtab *symtab, const struct object *object)
{
	const struct object_function *f = object->function;
	const size_t size = f ? strlen(f->name) : 0;

	if (size == 0 || size > UINT16_MAX)
		return 0;
	return symtab_add(symtab, &(struct symtab_symbol){ .address = f->address,
							   .size = f->size,
							   .limit = f->address + f->size,
							   .name = f->name,
							   .name_size = (uint16_t)size });
}

static int read_table(struct resolver *resolver, const struct object *object,
		      struct table **ret_table)
{
	struct table *table = arena_alloc(&resolver->arena, sizeof(*table));
	int r;

	if (!table)
		return -ENOMEM;
	r = read_symbols(resolver, object, table);
	if (r == 0 && object->state == OBJECT_OK)
		r = read_jit(resolver, object, &table->symtab);
	if (r == 0 && object->state == OBJECT_OK)
		r = read_kernel(resolver, object, &table->symtab);
	if (r == 0)
		r = add_function(&table->symtab, object);
	if (r == 0)
		r = symtab_seal(&table->symtab);
	if (r == 0) {
		table->ids =
		    arena_alloc(&resolver->arena, table->symtab.symbols.n * sizeof(*table->ids));
		r = table->ids ? 0 : -ENOMEM;
	}
	if (r < 0) {
		table_deinit(table);
		return r;
	}
	*ret_table = table;
	return 0;
}

static int get_table(struct resolver *resolver, const struct object *object,
		     struct table **ret_table)
{
	const uint32_t id = object->id.id;
	int r;

	if (id >= resolver->tables.n) {
		r = vec_reserve(&resolver->tables, id + (size_t)1 - resolver->tables.n);
		if (r < 0)
			return r;
		while (resolver->tables.n <= id)
			resolver->tables.items[resolver->tables.n++] = NULL;
	}
	if (!resolver->tables.items[id]) {
		r = read_table(resolver, object, &resolver->tables.items[id]);
		if (r < 0)
			return r;
	}
	*ret_table = resolver->tables.items[id];
	return 0;
}

static char *make_name(struct resolver *resolver, const struct symtab_symbol *symbol)
{
	char readable[DEMANGLE_MAX];
	const char *name = symbol->name;
	size_t size = demangle(symbol->name, symbol->name_size, readable);
	char *copy;

	if (size > 0)
		name = readable;
	else
		size = symbol->name_size;

	copy = arena_alloc(&resolver->arena, size + sizeof(PLT_SUFFIX));
	if (!copy)
		return NULL;
	memcpy(copy, name, size);
	if (symbol->plt)
		strcpy(copy + size, PLT_SUFFIX);
	return copy;
}

int resolver_find(struct resolver *resolver, const struct object *object, uint64_t address,
		  uint32_t *ret_symbol, uint64_t *ret_end)
{
	struct table *table;
	uint64_t end;
	uint32_t i;
	int r;

	r = get_table(resolver, object, &table);
	if (r < 0)
		return r;

	i = symtab_find(&table->symtab, address, &end);
	if (i != SYMTAB_NONE && table->ids[i] == 0) {
		const struct symtab_symbol *symbol = &table->symtab.symbols.items[i];
		const char *name = make_name(resolver, symbol);
		struct ptd_symbol *shown = arena_alloc(&resolver->arena, sizeof(*shown));

		if (!name || !shown)
			return -ENOMEM;
		*shown = (struct ptd_symbol){ .name = name, .address = symbol->address };
		r = vec_push(&resolver->symbols, shown);
		if (r < 0)
			return r;
		table->ids[i] = (uint32_t)resolver->symbols.n - 1;
	}
	*ret_symbol = i != SYMTAB_NONE ? table->ids[i] : PTD_NO_SYMBOL;
	*ret_end = end;
	return 0;
}

const struct ptd_symbol *const *resolver_symbols(const struct resolver *resolver, size_t *ret_n)
{
	*ret_n = resolver->symbols.n;
	return resolver->symbols.items;
}
