/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Symtab: symbols as they are added, and what covers each place then. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

#include "decoder/symbol/symtab.h"

#define LIMIT 0x1000

struct want {
	uint64_t address;
	const char *name; /* NULL: nothing */
	uint64_t end;
};

struct row {
	const char *title;
	struct {
		uint64_t address, size;
		const char *name;
		uint8_t rank;
	} symbols[6];
	struct want wants[8]; /* up to the first whose end is 0 */
};

/* clang-format off */
static const struct row rows[] = {
	{ "nothing", {}, { { 0, NULL, UINT64_MAX }, { 99, NULL, UINT64_MAX } } },
	{ "one with a size", { { 16, 4, "f", 0 } },
	  { { 15, NULL, 16 }, { 16, "f", 20 }, { 19, "f", 20 }, { 20, NULL, UINT64_MAX } } },
	{ "without a size, to the next", { { 32, 4, "g", 0 }, { 16, 0, "f", 0 } },
	  { { 16, "f", 32 }, { 31, "f", 32 }, { 32, "g", 36 } } },
	{ "without a size, to the end of the section", { { 16, 0, "f", 0 } },
	  { { 16, "f", LIMIT }, { LIMIT, NULL, UINT64_MAX } } },
	{ "never beyond its section", { { 16, UINT64_MAX, "f", 0 } },
	  { { LIMIT - 1, "f", LIMIT }, { LIMIT, NULL, UINT64_MAX } } },
	{ "the first of several names", { { 16, 4, "__f", 0 }, { 16, 4, "f", 0 }, { 16, 4, "a", 0 } },
	  { { 16, "__f", 20 } } },
	{ "function before label",
	  { { 16, 4, "label", SYMTAB_LABEL }, { 16, 4, "f", SYMTAB_FUNCTION } }, { { 16, "f", 20 } } },
	{ "function before indirect function before label",
	  { { 16, 4, "label", SYMTAB_LABEL }, { 16, 4, "i", SYMTAB_IFUNC }, { 16, 4, "f", SYMTAB_FUNCTION },
	    { 32, 4, "label", SYMTAB_LABEL }, { 32, 4, "i", SYMTAB_IFUNC } },
	  { { 16, "f", 20 }, { 32, "i", 36 } } },
	{ "one with a size before one without", { { 16, 0, "g", 0 }, { 16, 4, "f", 0 } },
	  { { 16, "f", 20 }, { 19, "f", 20 }, { 20, NULL, UINT64_MAX } } },
	{ "the inner of two that begin together", { { 16, 4, "inner", 0 }, { 16, 8, "outer", 0 } },
	  { { 16, "inner", 20 }, { 20, "outer", 24 }, { 24, NULL, UINT64_MAX } } },
	{ "inner and outer", { { 16, 16, "outer", 0 }, { 20, 4, "inner", 0 } },
	  { { 16, "outer", 20 }, { 20, "inner", 24 }, { 24, "outer", 32 }, { 32, NULL, UINT64_MAX } } },
	{ "inner ends with outer", { { 16, 16, "outer", 0 }, { 28, 4, "inner", 0 } },
	  { { 28, "inner", 32 }, { 32, NULL, UINT64_MAX } } },
	{ "overlap", { { 16, 8, "a", 0 }, { 20, 8, "b", 0 } },
	  { { 16, "a", 20 }, { 20, "b", 28 }, { 28, NULL, UINT64_MAX } } },
	{ "three deep", { { 0, 64, "a", 0 }, { 8, 32, "b", 0 }, { 16, 8, "c", 0 }, { 30, 50, "d", 0 } },
	  { { 0, "a", 8 }, { 8, "b", 16 }, { 16, "c", 24 }, { 24, "b", 30 }, { 30, "d", 80 },
	    { 80, NULL, UINT64_MAX } } },
	{ "a label inside a function is not another", { { 16, 16, "f", 0 }, { 20, 0, "label", SYMTAB_LABEL } },
	  { { 16, "f", 32 }, { 24, "f", 32 } } },
	{ "labels behind one another", { { 16, 0, "a", SYMTAB_LABEL }, { 20, 0, "b", SYMTAB_LABEL } },
	  { { 16, "a", 20 }, { 20, "b", LIMIT } } },
	{ "neighbours", { { 16, 4, "a", 0 }, { 20, 4, "b", 0 } }, { { 19, "a", 20 }, { 20, "b", 24 } } },
};
/* clang-format on */

static void find_all(const struct row *row, symtab_bounds_fn bounds, void *userdata)
{
	_cleanup_(symtab_deinit) struct symtab symtab = {};

	for (size_t k = 0; row->symbols[k].name; k++) {
		const char *name = row->symbols[k].name;
		const struct symtab_symbol symbol = {
			.address = row->symbols[k].address,
			.size = row->symbols[k].size,
			.limit = LIMIT,
			.name = name,
			.name_size = (uint16_t)strlen(name),
			.rank = row->symbols[k].rank,
		};

		assert_int_equal(symtab_add(&symtab, &symbol), 0);
	}
	assert_int_equal(symtab_seal(&symtab, bounds, userdata), 0);

	for (const struct want *w = row->wants; w->end; w++) {
		uint64_t end = 0;
		const uint32_t found = symtab_find(&symtab, w->address, &end);

		assert_true(end == w->end);
		if (w->name)
			assert_string_equal(symtab.symbols.items[found].name, w->name);
		else
			assert_int_equal(found, SYMTAB_NONE);
	}
}

static void finds(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		print_message("  %s\n", rows[i].title);
		find_all(&rows[i], NULL, NULL);
	}
}

struct bounded_row {
	const char *title;
	struct {
		uint64_t start, end;
	} functions[3];
	struct row row;
};

/* clang-format off */
static const struct bounded_row bounded_rows[] = {
	{ "a symbol without a size has its function's", { { 16, 24 } },
	  { .symbols = { { 16, 0, "f", 0 } }, .wants = { { 16, "f", 24 }, { 24, NULL, UINT64_MAX } } } },
	{ "one with a size keeps it", { { 16, 24 } },
	  { .symbols = { { 16, 4, "f", 0 } }, .wants = { { 16, "f", 20 }, { 20, NULL, UINT64_MAX } } } },
	{ "a label in a function that begins with a symbol is not another", { { 16, 32 } },
	  { .symbols = { { 16, 0, "f", 0 }, { 20, 0, "label", SYMTAB_LABEL } },
	    .wants = { { 16, "f", 32 }, { 24, "f", 32 }, { 32, NULL, UINT64_MAX } } } },
	{ "a label in a function without a symbol reaches to its end", { { 16, 32 } },
	  { .symbols = { { 20, 0, "label", SYMTAB_LABEL } },
	    .wants = { { 16, NULL, 20 }, { 20, "label", 32 }, { 32, NULL, UINT64_MAX } } } },
	{ "a label between functions reaches to the next", { { 16, 32 }, { 64, 80 } },
	  { .symbols = { { 40, 0, "label", SYMTAB_LABEL } },
	    .wants = { { 40, "label", 64 }, { 64, NULL, UINT64_MAX } } } },
	{ "a function inside one with a size is not another", { { 16, 32 }, { 32, 48 } },
	  { .symbols = { { 16, 32, "f", 0 }, { 32, 0, "label", SYMTAB_LABEL } },
	    .wants = { { 16, "f", 48 }, { 40, "f", 48 }, { 48, NULL, UINT64_MAX } } } },
	{ "never beyond its section", { { 16, UINT64_MAX } },
	  { .symbols = { { 16, 0, "f", 0 } }, .wants = { { 16, "f", LIMIT }, { LIMIT, NULL, UINT64_MAX } } } },
};
/* clang-format on */

static bool bounds(void *userdata, uint64_t address, uint64_t *ret_start, uint64_t *ret_end)
{
	const struct bounded_row *row = userdata;

	*ret_start = 0;
	for (size_t i = 0; i < ARRAY_LEN(row->functions) && row->functions[i].end; i++) {
		const uint64_t start = row->functions[i].start, end = row->functions[i].end;

		if (address < start) {
			*ret_end = start;
			return false;
		}
		*ret_start = address < end ? start : end;
		*ret_end = end;
		if (address < end)
			return true;
	}
	*ret_end = UINT64_MAX;
	return false;
}

static void has_bounds(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bounded_rows); i++) {
		print_message("  %s\n", bounded_rows[i].title);
		find_all(&bounded_rows[i].row, bounds, (void *)(uintptr_t)&bounded_rows[i]);
	}
}

/* The stubs of a PLT are called after the indirect function, not after the code that chooses. */
static void is_referred_to(void **state)
{
	static const struct symtab_symbol symbols[] = {
		{ .address = 16, .size = 4, .limit = LIMIT, .name = "f_ifunc" },
		{ .address = 16, .size = 4, .limit = LIMIT, .name = "f", .rank = SYMTAB_IFUNC },
		{ .address = 32, .size = 4, .limit = LIMIT, .name = "g" },
		{ .address = 32, .size = 4, .limit = LIMIT, .name = "alias" },
	};
	_cleanup_(symtab_deinit) struct symtab symtab = {};

	(void)state;
	assert_null(symtab_at(&symtab, 16));
	for (size_t i = 0; i < ARRAY_LEN(symbols); i++)
		assert_int_equal(symtab_add(&symtab, &symbols[i]), 0);
	assert_string_equal(symtab_at(&symtab, 16)->name, "f");
	assert_string_equal(symtab_at(&symtab, 32)->name, "g");
	assert_null(symtab_at(&symtab, 17));
	assert_null(symtab_at(&symtab, 33));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds),
		cmocka_unit_test(has_bounds),
		cmocka_unit_test(is_referred_to),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
