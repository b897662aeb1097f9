/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/symbol/source.h"

#include <errno.h>

static bool find_bounds(void *userdata, uint64_t address, uint64_t *ret_start, uint64_t *ret_end)
{
	struct symbol_source *source = userdata;

	return source->ops->bounds(source, address, ret_start, ret_end);
}

static int read_symbols(struct symbol_source *source)
{
	struct symtab symtab = {};
	int r;

	r = source->ops->read(source, &symtab);
	/* An object with more names than any program has is foreign: those read so far must do. */
	if (r == 0 || r == -E2BIG)
		r = symtab_seal(&symtab, source->ops->bounds ? find_bounds : NULL, source);
	if (r < 0) {
		symtab_deinit(&symtab);
		return r;
	}
	source->symtab = symtab;
	source->is_read = true;
	return 0;
}

/* Find a function that no symbol covers; from @end on the answer may differ anyway. */
static int find_unnamed(struct symbol_source *source, uint64_t address, uint64_t end,
			const struct symtab_symbol **ret_symbol, uint64_t *ret_end)
{
	const struct symtab_symbol *symbol = NULL;
	uint64_t start, function_end;
	int r = 0;

	if (source->ops->bounds(source, address, &start, &function_end))
		r = source->ops->name(source, start, &symbol);
	if (r < 0)
		return r;
	*ret_symbol = symbol;
	*ret_end = function_end < end ? function_end : end;
	return 0;
}

int symbol_source_find(struct symbol_source *source, uint64_t address,
		       const struct symtab_symbol **ret_symbol, uint64_t *ret_end)
{
	uint64_t end;
	uint32_t i;
	int r;

	if (source->ops->find)
		return source->ops->find(source, address, ret_symbol, ret_end);
	if (!source->is_read) {
		r = read_symbols(source);
		if (r < 0)
			return r;
	}
	i = symtab_find(&source->symtab, address, &end);
	if (i == SYMTAB_NONE && source->ops->bounds)
		return find_unnamed(source, address, end, ret_symbol, ret_end);
	*ret_symbol = i == SYMTAB_NONE ? NULL : &source->symtab.symbols.items[i];
	*ret_end = end;
	return 0;
}

void symbol_source_deinit(struct symbol_source *source)
{
	symtab_deinit(&source->symtab);
	source->is_read = false;
}

static int read_list(struct symbol_source *source, struct symtab *symtab)
{
	const struct symbol_list *list = (const struct symbol_list *)source;
	int r = 0;

	for (size_t i = 0; r == 0 && i < list->symbols.n; i++)
		r = symtab_add(symtab, &list->symbols.items[i]);
	return r;
}

static const struct symbol_source_ops list_ops = { .read = read_list };

void symbol_list_init(struct symbol_list *list)
{
	*list = (struct symbol_list){ .source.ops = &list_ops };
}

int symbol_list_add(struct symbol_list *list, uint64_t address, uint64_t size, const char *name,
		    uint16_t name_size, const struct ptd_jit_note *jit)
{
	return vec_push(&list->symbols, { .address = address,
					  .size = size,
					  .limit = address + size,
					  .name = name,
					  .name_size = name_size,
					  .jit = jit });
}

void symbol_list_deinit(struct symbol_list *list)
{
	symbol_source_deinit(&list->source);
	vec_deinit(&list->symbols);
}
