/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Symbol sources: when they read their names, what they do if that fails, and names put together.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>

#include "decoder/symbol/source.h"
#include "tests/lib/symbolat.h"

/* A source whose read operation adds one name and returns what it is told to. */
struct one_name {
	struct symbol_source source;
	int result;
	int n_reads;
};

static int read_one_name(struct symbol_source *source, struct symtab *symtab)
{
	struct one_name *one = (struct one_name *)source;
	const struct symtab_symbol symbol = {
		.address = 16, .size = 8, .limit = 24, .name = "f", .name_size = 1
	};
	const int r = symtab_add(symtab, &symbol);

	one->n_reads++;
	return r < 0 ? r : one->result;
}

static const struct symbol_source_ops one_name_ops = { .read = read_one_name };

static void reads_once(void **state)
{
	struct one_name one = { .source.ops = &one_name_ops };
	const struct symtab_symbol *symbol = NULL;
	uint64_t end;

	(void)state;
	assert_int_equal(one.n_reads, 0);
	symbolat_expect(&one.source, 15, "");
	symbolat_expect(&one.source, 16, "f");
	symbolat_expect(&one.source, 23, "f");
	symbolat_expect(&one.source, 24, "");
	assert_int_equal(one.n_reads, 1);
	assert_int_equal(symbol_source_find(&one.source, 0, &symbol, &end), 0);
	assert_int_equal(end, 16);
	assert_int_equal(symbol_source_find(&one.source, 17, &symbol, &end), 0);
	assert_int_equal(end, 24);
	assert_int_equal(symbol_source_find(&one.source, 24, &symbol, &end), 0);
	assert_true(end == UINT64_MAX);
	symbol_source_deinit(&one.source);
}

/* After an error, outputs are as before, and the next question reads again. */
static void reads_again_after_an_error(void **state)
{
	struct one_name one = { .source.ops = &one_name_ops, .result = -ENOMEM };
	const struct symtab_symbol dummy = {}, *symbol = &dummy;
	uint64_t end = 7;

	(void)state;
	assert_int_equal(symbol_source_find(&one.source, 16, &symbol, &end), -ENOMEM);
	assert_ptr_equal(symbol, &dummy);
	assert_int_equal(end, 7);
	one.result = 0;
	symbolat_expect(&one.source, 16, "f");
	assert_int_equal(one.n_reads, 2);
	assert_int_equal(one.source.symtab.symbols.n, 1);
	symbol_source_deinit(&one.source);
}

/* Of more names than a table holds, those that were read count. */
static void too_many_names(void **state)
{
	struct one_name one = { .source.ops = &one_name_ops, .result = -E2BIG };

	(void)state;
	symbolat_expect(&one.source, 16, "f");
	assert_int_equal(one.n_reads, 1);
	symbol_source_deinit(&one.source);
}

static void a_list(void **state)
{
	struct symbol_list list;

	(void)state;
	symbol_list_init(&list);
	assert_int_equal(symbol_list_add(&list, 32, 8, "second", 6, NULL), 0);
	assert_int_equal(symbol_list_add(&list, 16, 8, "first and more", 5, NULL), 0);
	symbolat_expect(&list.source, 15, "");
	symbolat_expect(&list.source, 16, "first");
	symbolat_expect(&list.source, 24, "");
	symbolat_expect(&list.source, 39, "second");
	symbolat_expect(&list.source, 40, "");
	symbol_list_deinit(&list);
	symbol_list_init(&list);
	symbolat_expect(&list.source, 0, "");
	symbol_list_deinit(&list);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_once),
		cmocka_unit_test(reads_again_after_an_error),
		cmocka_unit_test(too_many_names),
		cmocka_unit_test(a_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
