/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/symbol/symtab.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SYMBOLS_MAX (1u << 22)

void symtab_deinit(struct symtab *symtab)
{
	vec_deinit(&symtab->symbols);
	vec_deinit(&symtab->ranges);
}

int symtab_add(struct symtab *symtab, const struct symtab_symbol *symbol)
{
	int r;

	if (symtab->symbols.n == SYMBOLS_MAX)
		return -E2BIG;
	r = vec_push(&symtab->symbols, *symbol);
	if (r < 0)
		return r;
	symtab->symbols.items[symtab->symbols.n - 1].order = (uint32_t)symtab->symbols.n;
	symtab->sorted = false;
	return 0;
}

/* Order: by address, then larger symbols first, then, for the same code, the best name first. */
static int compare_symbols(const void *pa, const void *pb)
{
	const struct symtab_symbol *a = pa, *b = pb;

	return COMPARE(a->address, b->address) ?: COMPARE(b->size, a->size)
		?: COMPARE(a->rank, b->rank) ?: COMPARE(a->order, b->order);
}

static void sort_symbols(struct symtab *symtab)
{
	if (!symtab->sorted)
		vec_sort(&symtab->symbols, compare_symbols);
	symtab->sorted = true;
}

const struct symtab_symbol *symtab_at(struct symtab *symtab, uint64_t address)
{
	const struct symtab_symbol *s = symtab->symbols.items;
	size_t low;

	sort_symbols(symtab);
	low = vec_bisect(&symtab->symbols, symbol, symbol->address < address);
	for (size_t i = low; i < symtab->symbols.n && s[i].address == address; i++)
		if (s[i].rank == SYMTAB_IFUNC)
			return &s[i];
	return low < symtab->symbols.n && s[low].address == address ? &s[low] : NULL;
}

/* Keep one name for the same code. A symbol without a size names whatever begins at its address. */
static void drop_aliases(struct symtab *symtab)
{
	struct symtab_symbol *s = symtab->symbols.items;
	size_t n = 0;

	for (size_t i = 0; i < symtab->symbols.n; i++)
		if (n == 0 || s[i].address != s[n - 1].address ||
		    (s[i].size != 0 && s[i].size != s[n - 1].size))
			s[n++] = s[i];
	symtab->symbols.n = n;
}

/*
 * Give each symbol without a size the size of its function, if it stands at the function's start.
 * From elsewhere it reaches no farther than to the function's end, or the start of the next.
 */
static void size_symbols(struct symtab *symtab, symtab_bounds_fn bounds, void *userdata)
{
	for (size_t i = 0; i < symtab->symbols.n; i++) {
		struct symtab_symbol *s = &symtab->symbols.items[i];
		uint64_t start, end;

		if (s->size != 0)
			continue;
		if (bounds(userdata, s->address, &start, &end) && start == s->address) {
			s->size = end - start;
			s->unsized = true;
		} else if (end < s->limit) {
			s->limit = end;
		}
	}
}

static uint64_t symbol_end(const struct symtab *symtab, size_t i)
{
	const struct symtab_symbol *s = &symtab->symbols.items[i];
	uint64_t end = s->limit;

	if (s->size != 0 && s->size < end - s->address)
		end = s->address + s->size;
	else if (s->size == 0 && i + 1 < symtab->symbols.n && s[1].address < end)
		end = s[1].address;
	return end;
}

/* A sweep over the sorted symbols. Open are those that cover its place, the innermost one last. */
struct sweep {
	struct symtab *symtab;
	VEC(struct open_symbol {
		uint64_t end;
		uint32_t symbol;
	})
	open;
};

static int begin_range(struct symtab *symtab, uint64_t start, uint32_t symbol)
{
	if (symtab->ranges.n > 0) {
		struct symtab_range *last = &symtab->ranges.items[symtab->ranges.n - 1];

		if (last->start == start) {
			last->symbol = symbol;
			return 0;
		}
	}
	return vec_push(&symtab->ranges, { .start = start, .symbol = symbol });
}

/* Close the symbols that end up to @address; the symbol around them goes on behind them. */
static int sweep_to(struct sweep *sweep, uint64_t address)
{
	while (sweep->open.n > 0) {
		const uint64_t end = sweep->open.items[sweep->open.n - 1].end;
		int r;

		if (end > address)
			break;
		while (sweep->open.n > 0 && sweep->open.items[sweep->open.n - 1].end <= end)
			sweep->open.n--;
		r = begin_range(sweep->symtab, end,
				sweep->open.n ? sweep->open.items[sweep->open.n - 1].symbol
					      : SYMTAB_NONE);
		if (r < 0)
			return r;
	}
	return 0;
}

static int sweep_symbol(struct sweep *sweep, uint32_t i)
{
	const struct symtab_symbol *s = &sweep->symtab->symbols.items[i];
	int r;

	r = sweep_to(sweep, s->address);
	if (r < 0)
		return r;
	/* A label inside a function does not begin another function. */
	if ((s->size == 0 || s->unsized) && sweep->open.n > 0)
		return 0;
	r = vec_push(&sweep->open, { .end = symbol_end(sweep->symtab, i), .symbol = i });
	return r < 0 ? r : begin_range(sweep->symtab, s->address, i);
}

int symtab_seal(struct symtab *symtab, symtab_bounds_fn bounds, void *userdata)
{
	struct sweep sweep = { .symtab = symtab };
	int r = 0;

	sort_symbols(symtab);
	drop_aliases(symtab);
	if (bounds)
		size_symbols(symtab, bounds, userdata);

	for (size_t i = 0; i < symtab->symbols.n && r == 0; i++)
		r = sweep_symbol(&sweep, (uint32_t)i);
	if (r == 0)
		r = sweep_to(&sweep, UINT64_MAX);
	vec_deinit(&sweep.open);
	return r;
}

uint32_t symtab_find(const struct symtab *symtab, uint64_t address, uint64_t *ret_end)
{
	const struct symtab_range *ranges = symtab->ranges.items;
	const size_t low = vec_bisect(&symtab->ranges, range, range->start <= address);

	*ret_end = low < symtab->ranges.n ? ranges[low].start : UINT64_MAX;
	return low > 0 ? ranges[low - 1].symbol : SYMTAB_NONE;
}
