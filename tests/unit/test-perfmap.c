/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Perf maps: which lines are names, and of which code. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/symbol/perfmap.h"
#include "tests/lib/symbolat.h"
#include "tests/lib/tempdir.h"

/* The first letter of the name at @address; '.': it has none. */
static char letter_at(struct perfmap *perfmap, uint64_t address, bool is_last)
{
	const struct symtab_symbol *name;
	uint64_t end;

	assert_int_equal(perfmap_find(perfmap, address, is_last, &name, &end), 0);
	assert_true(end > address);
	return name ? name->name[0] : '.';
}

/*
 * What the lines name at 0x1000, 0x1010, … 0x1070, each by its first letter, '.' where there is no
 * name: of code that is there at last, and of code that was there before.
 */
static const struct row {
	const char *text;
	const char *at_last, *before;
} rows[] = {
	{ "1000 10 a\n1020 20 c\n", "a.cc....", "a.cc...." },
	{ "0x1000 10 a\n1010 0x10 b\n0x1020 0x20 c\n0X1040 0X10 e\n", "abcce...", "abcce..." },
	{ "0x0000000000001000 0x00000010 a\n", "a.......", "a......." },
	{ "00000000000000001000 10 a\n", "a.......", "a......." },
	{ "1020 10 c\n1000 10 a\n1010 10 b\n", "abc.....", "abc....." },
	{ "1000\t10\ta\n\t1010  10   b c\n", "ab......", "ab......" },
	{ "1000 10 a\r\n1010 10 \r\n\r\n1020 10 c\r\n", "a.c.....", "a.c....." },
	{ "FFF 11 A\n", "A.......", "A......." },
	{ "0xFF8 8 x\n0xff8 0x18 y\n", "y.......", "y......." },
	/* No lines of names. */
	{ "nonsense\n1000\n1000 10\n1000 10 \n\n \n0x 10 a\n1000 0x a\n", "........", "........" },
	{ "11111111111111111 10 a\n10g0 10 a\n1000 -1 a\n1000 1h a\n", "........", "........" },
	{ "1000 add\n1010 Foo.bar()\n1020 x y\n", "........", "........" },
	{ "1000 10 a\n1010 10 b", "a.......", "a......." },
	{ "1000 0 a\n1010 10 b\n", ".b......", ".b......" },
	{ "1000 10 a\n1010 10 b\n1000 80000001 huge\n", "ab......", "ab......" },
	{ "1000 80000000 2 GiB\n", "22222222", "22222222" },
	{ "1000 ffffffffffffffff a\nfffffffffffff000 1000 b\n", "........", "........" },
	/* Used again. */
	{ "1000 10 a\n1000 10 b\n", "b.......", "........" },
	{ "1000 10 a\n1000 10 a\n", "a.......", "a......." },
	{ "1000 10 a\n1000 10 b\n1000 10 a\n", "a.......", "........" },
	{ "1000 40 a\n1010 10 b\n", "abaa....", "a.aa...." },
	{ "1010 10 b\n1000 40 a\n", "aaaa....", "a.aa...." },
	{ "1000 20 a\n1010 20 b\n", "abb.....", "a.b....." },
	{ "1010 20 b\n1000 20 a\n", "aab.....", "a.b....." },
	{ "1000 80 a\n1010 50 b\n1020 10 c\n1030 40 d\n", "abcdddda", "a......a" },
	{ "1030 40 d\n1020 10 c\n1010 50 b\n1000 80 a\n", "aaaaaaaa", "a......a" },
	{ "1000 20 a\n1020 20 a\n1010 20 a\n", "aaaa....", "aaaa...." },
};

static void lines(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct mapfile map = { .bytes = (const uint8_t *)rows[i].text,
					     .size = strlen(rows[i].text) };
		size_t n_lines_left = 1000;
		struct perfmap perfmap = { .text = &map, .n_lines_left = &n_lines_left };

		for (unsigned k = 0; k < 8; k++) {
			const char found[] = { letter_at(&perfmap, 0x1000 + 0x10 * k, true),
					       letter_at(&perfmap, 0x1000 + 0x10 * k, false) };

			if (found[0] != rows[i].at_last[k] || found[1] != rows[i].before[k])
				fail_msg("%s%#x: %c, before %c", rows[i].text, 0x1000 + 0x10 * k,
					 found[0], found[1]);
		}
		perfmap_deinit(&perfmap);
	}
}

/* A name is as long as it is, with blanks in it, and stands where its line says. */
static void names(void **state)
{
	static const char text[] =
	    "1010 8 void [Lib] A.B::c(int, string)[Tier0]  \r\n1018 8 a\0b\n";
	const struct mapfile map = { .bytes = (const uint8_t *)text, .size = sizeof(text) - 1 };
	const struct mapfile empty = {};
	size_t n_lines_left = 1000;
	struct perfmap perfmap = { .text = &map, .n_lines_left = &n_lines_left };
	struct perfmap nothing = { .text = &empty, .n_lines_left = &n_lines_left };
	const struct symtab_symbol *name;
	uint64_t end;

	(void)state;
	assert_int_equal(perfmap_find(&perfmap, 0x1017, true, &name, &end), 0);
	assert_int_equal(name->address, 0x1010);
	assert_int_equal(name->size, 8);
	assert_int_equal(name->name_size, strlen("void [Lib] A.B::c(int, string)[Tier0]"));
	assert_int_equal(end, 0x1018);
	assert_int_equal(perfmap_find(&perfmap, 0x1018, true, &name, &end), 0);
	assert_int_equal(name->name_size, 1);
	assert_int_equal(perfmap_find(&perfmap, 0x1020, true, &name, &end), 0);
	assert_null(name);
	assert_int_equal(end, UINT64_MAX);
	assert_int_equal(perfmap_find(&nothing, 0x1010, true, &name, &end), 0);
	assert_null(name);
	perfmap_deinit(&perfmap);
	perfmap_deinit(&nothing);
}

/* Lines beyond the bound have no names, and all perf maps of a snapshot share the bound. */
static void too_many_lines(void **state)
{
	static const char text[] = "1010 10 first\n1020 10 second\n";
	const struct mapfile map = { .bytes = (const uint8_t *)text, .size = sizeof(text) - 1 };
	size_t n_lines_left = 3;
	struct perfmap perfmaps[] = { { .text = &map, .n_lines_left = &n_lines_left },
				      { .text = &map, .n_lines_left = &n_lines_left } };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(letter_at(&perfmaps[i], 0x1010, true), 'f');
		assert_int_equal(letter_at(&perfmaps[i], 0x1020, true), i == 0 ? 's' : '.');
		perfmap_deinit(&perfmaps[i]);
	}
	assert_int_equal(n_lines_left, 0);
}

/* The perf maps of a snapshot: one a process, found again, and none where there is no file. */
static void of_a_snapshot(void **state)
{
	struct perfmap *first, *again, *other, *none;
	struct perfmap_source source;
	char dir[TEMPDIR_SIZE];
	struct perfmaps maps;

	(void)state;
	tempdir_make("perfmap", dir);
	tempdir_put_text(dir, "jit/perf-7.map", "1010 10 seven\n");
	tempdir_put_text(dir, "jit/perf-71.map", "1010 10 seventy-one\n");
	perfmaps_init(&maps, dir);
	assert_int_equal(perfmaps_find(&maps, 7, &first), 0);
	assert_int_equal(perfmaps_find(&maps, 71, &other), 0);
	assert_int_equal(perfmaps_find(&maps, 8, &none), 0);
	assert_null(none);
	assert_int_equal(perfmaps_find(&maps, 8, &none), 0);
	assert_null(none);
	assert_int_equal(perfmaps_find(&maps, 7, &again), 0);
	assert_ptr_equal(again, first);
	assert_int_equal(letter_at(first, 0x1010, true), 's');
	perfmap_source_init(&source, &maps, 71, true);
	symbolat_expect(&source.source, 0x1010, "seventy-one");
	assert_int_equal(maps.n_lines_left, PERFMAP_LINES_MAX - 2);
	perfmaps_deinit(&maps);
	tempdir_remove(dir);
}

/* Of processes that fork: what happened, and the names of code of process 7 at 0x1010 to 0x1030. */
static void forks(void **state)
{
	static const struct {
		const char *what; /* pid<parent: a fork; pid!: another program */
		const char *at_last, *before;
	} cases[] = {
		{ "", "b.n", "b.n" },
		{ "5! 6<5 7<6", "bpn", "bpn" },
		{ "5! 6<5 6! 7<6", "b.n", "b.n" },
		{ "5! 7<5", "bpn", "bpn" },
		{ "7<5", "bpn", "bpn" },
		{ "7<5 7!", "b.n", "b.n" },
		{ "7<5 5!", "b.n", "b.n" },
		{ "7<5 5! 7<5", "bpn", "bpn" },
		{ "7<7", "b.n", "b.n" },
		{ "6<7 7<6", "b.n", "b.n" },
	};
	char dir[TEMPDIR_SIZE];

	(void)state;
	tempdir_make("perfmap", dir);
	tempdir_put_text(dir, "jit/perf-5.map",
			 "1010 8 parent\n1020 8 parent\n1030 8 old\n1030 8 parent\n");
	tempdir_put_text(dir, "jit/perf-7.map", "1010 8 b\n1030 8 n\n");
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct perfmap_source sources[2];
		struct perfmaps maps;

		perfmaps_init(&maps, dir);
		for (const char *at = cases[i].what; *at; at += strspn(at, " ")) {
			unsigned pid, parent = 0;

			if (sscanf(at, "%u<%u", &pid, &parent) < 1)
				fail_msg("%s", at);
			assert_int_equal(perfmaps_begin(&maps, pid, parent), 0);
			at += strcspn(at, " ");
		}
		perfmap_source_init(&sources[0], &maps, 7, true);
		perfmap_source_init(&sources[1], &maps, 7, false);
		for (unsigned k = 0; k < 3; k++)
			for (unsigned j = 0; j < 2; j++) {
				const char *wanted = j == 0 ? cases[i].at_last : cases[i].before;
				const struct symtab_symbol *name;
				uint64_t end;

				assert_int_equal(symbol_source_find(&sources[j].source,
								    0x1010 + 0x10 * k, &name, &end),
						 0);
				if ((name ? name->name[0] : '.') != wanted[k])
					fail_msg("%s: %u, %u", cases[i].what, k, j);
			}
		perfmaps_deinit(&maps);
	}
	tempdir_remove(dir);
}

/* A line that covers all others, and one that is covered by all, are no more work than others. */
static void many_lines(void **state)
{
	enum { LINES = 200000, LINE_SIZE = 24 };
	char *text = malloc(LINES * LINE_SIZE + 1);
	struct mapfile map = { .size = (size_t)LINES * LINE_SIZE };
	size_t n_lines_left = PERFMAP_LINES_MAX;
	struct perfmap perfmap = { .text = &map, .n_lines_left = &n_lines_left };

	(void)state;
	assert_non_null(text);
	/* In an order that is not that of the addresses; then lines over all of them. */
	for (unsigned i = 0; i < LINES; i++) {
		const unsigned k = (unsigned)(i * 7919ull % (LINES / 2));

		(void)snprintf(text + (size_t)i * LINE_SIZE, LINE_SIZE + 1, "%08x %7x %c%04u\n",
			       0x10000000 + (i < LINES / 2 ? k * 40 : 0),
			       i < LINES / 2 ? 0x28 : 0x7000000, i < LINES / 2 ? 'f' : 'g',
			       i < LINES / 2 ? k % 10000 : i % 2);
		text[(size_t)(i + 1) * LINE_SIZE - 1] = '\n';
	}
	map.bytes = (const uint8_t *)text;
	assert_int_equal(letter_at(&perfmap, 0x10000000 + 40 * 7, true), 'g');
	assert_int_equal(letter_at(&perfmap, 0x10000000 + 40 * 7, false), '.');
	assert_int_equal(perfmap.names.n, LINES);
	perfmap_deinit(&perfmap);
	free(text);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines),          cmocka_unit_test(names),
		cmocka_unit_test(too_many_lines), cmocka_unit_test(of_a_snapshot),
		cmocka_unit_test(forks),          cmocka_unit_test(many_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
