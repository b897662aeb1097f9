/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/symbol/resolver.h"

#include <errno.h>
#include <string.h>

#include "decoder/symbol/demangle.h"
#include "decoder/symbol/source.h"
#include "util/arena.h"
#include "util/map.h"

#define PLT_SUFFIX "@plt"

struct resolver {
	struct arena arena; /* names, symbols and the arrays of symbols */
	struct map ids;     /* symbol of a source → id */

	/* By id. An array that is full is copied to one of twice the size, and stays. */
	const struct ptd_symbol **symbols;
	size_t n_symbols, n_symbols_max;
};

#define SYMBOLS_MIN 1024 /* in the first array */

/* The symbol with the id PTD_NO_SYMBOL. */
static const struct ptd_symbol no_symbol = { .name = "" };

static int push_symbol(struct resolver *resolver, const struct ptd_symbol *symbol)
{
	if (resolver->n_symbols == resolver->n_symbols_max) {
		const size_t n_max = resolver->n_symbols_max * 2 ?: SYMBOLS_MIN;
		const struct ptd_symbol **symbols =
		    arena_alloc(&resolver->arena, n_max * sizeof(const struct ptd_symbol *));

		if (!symbols)
			return -ENOMEM;
		if (resolver->n_symbols > 0)
			memcpy(symbols, resolver->symbols, resolver->n_symbols * sizeof(*symbols));
		resolver->symbols = symbols;
		resolver->n_symbols_max = n_max;
	}
	resolver->symbols[resolver->n_symbols++] = symbol;
	return 0;
}

int resolver_new(struct resolver **ret_resolver)
{
	_cleanup_(resolver_freep) struct resolver *resolver = calloc(1, sizeof(*resolver));
	int r;

	if (!resolver)
		return -ENOMEM;
	r = push_symbol(resolver, &no_symbol);
	if (r < 0)
		return r;
	*ret_resolver = TAKE(resolver);
	return 0;
}

struct resolver *resolver_free(struct resolver *resolver)
{
	if (!resolver)
		return NULL;
	map_deinit(&resolver->ids);
	arena_deinit(&resolver->arena);
	free(resolver);
	return NULL;
}

static char *shown_name(struct resolver *resolver, const struct symtab_symbol *symbol)
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

static int add_symbol(struct resolver *resolver, const struct symtab_symbol *symbol,
		      uint32_t *ret_id)
{
	struct ptd_symbol *shown = arena_alloc(&resolver->arena, sizeof(*shown));
	const char *name = shown_name(resolver, symbol);
	int r;

	if (!name || !shown)
		return -ENOMEM;
	*shown = (struct ptd_symbol){ .name = name,
				      .address = symbol->address,
				      .size = symbol->size,
				      .jit = symbol->jit,
				      .is_plt = symbol->plt };
	r = push_symbol(resolver, shown);
	if (r < 0)
		return r;
	*ret_id = (uint32_t)resolver->n_symbols - 1;
	return map_put(&resolver->ids, (uintptr_t)symbol, *ret_id);
}

int resolver_find(struct resolver *resolver, struct symbol_source *source, uint64_t address,
		  uint32_t *ret_symbol, uint64_t *ret_end)
{
	const struct symtab_symbol *symbol = NULL;
	uint32_t id = PTD_NO_SYMBOL;
	uint64_t end = UINT64_MAX;
	const uint64_t *known;
	int r;

	if (source) {
		r = symbol_source_find(source, address, &symbol, &end);
		if (r < 0)
			return r;
	}
	if (symbol) {
		known = map_get(&resolver->ids, (uintptr_t)symbol);
		r = known ? 0 : add_symbol(resolver, symbol, &id);
		if (r < 0)
			return r;
		if (known)
			id = (uint32_t)*known;
	}
	*ret_symbol = id;
	*ret_end = end;
	return 0;
}

const struct ptd_symbol *const *resolver_symbols(const struct resolver *resolver, size_t *ret_n)
{
	*ret_n = resolver->n_symbols;
	return resolver->symbols;
}
