/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Perf maps: which lines are names, and how long it takes to name many pieces of memory. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "decoder/symbol/perfmap.h"
#include "tests/lib/symbolat.h"
#include "tests/lib/tempdir.h"

#define PAGE_SIZE 4096u

static void lines(void **state)
{
	static const char text[] = "2010 10 second\n"
				   "1010 10 first\n"
				   "0x1020 20 JS:~a b\n"
				   "1020 20 other name of it\n"
				   "1f00 200 begins before the page\n"
				   "1FF0 8 capitals\n"
				   "\n"
				   "nonsense\n"
				   "1040\n"
				   "1040 10\n"
				   "1040 10 \n"
				   "11111111111111111 10 too long\n"
				   "10g0 10 no number\n"
				   "2ff0 100 reaches out of the page\n"
				   "3000 10 outside\n"
				   "1050 10 no newline";
	const struct mapfile map = { .bytes = (const uint8_t *)text, .size = sizeof(text) - 1 };
	const struct mapfile empty = {};
	size_t n_lines_left = 1000;
	struct perfmap perfmap = { .text = &map, .n_lines_left = &n_lines_left };
	struct perfmap nothing = { .text = &empty, .n_lines_left = &n_lines_left };
	struct perfmap_source low, high, none;

	(void)state;
	perfmap_source_init(&high, &perfmap, 0x2000, 0x3000);
	perfmap_source_init(&low, &perfmap, 0x1000, 0x2000);
	perfmap_source_init(&none, &nothing, 0x1000, 0x2000);

	symbolat_expect(&low.source, 0x1000, "");
	symbolat_expect(&low.source, 0x1010, "first");
	symbolat_expect(&low.source, 0x101f, "first");
	symbolat_expect(&low.source, 0x1020, "JS:~a b");
	symbolat_expect(&low.source, 0x1040, "");
	symbolat_expect(&low.source, 0x1050, "no newline");
	symbolat_expect(&low.source, 0x10a0, "");
	symbolat_expect(&low.source, 0x1ff0, "capitals");
	symbolat_expect(&low.source, 0x1f00, "begins before the page");
	symbolat_expect(&high.source, 0x2000, "");
	symbolat_expect(&high.source, 0x2010, "second");
	symbolat_expect(&high.source, 0x2fff, "reaches out of the page");
	symbolat_expect(&none.source, 0x1010, "");
	perfmap_source_deinit(&low);
	perfmap_source_deinit(&high);
	perfmap_source_deinit(&none);
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
	struct perfmap_source sources[2];

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		perfmap_source_init(&sources[i], &perfmaps[i], 0x1000, 0x2000);
		symbolat_expect(&sources[i].source, 0x1010, "first");
		symbolat_expect(&sources[i].source, 0x1020, i == 0 ? "second" : "");
		perfmap_source_deinit(&sources[i]);
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
	perfmap_source_init(&source, first, 0x1000, 0x2000);
	symbolat_expect(&source.source, 0x1010, "seven");
	perfmap_source_deinit(&source);
	perfmap_source_init(&source, other, 0x1000, 0x2000);
	symbolat_expect(&source.source, 0x1010, "seventy-one");
	perfmap_source_deinit(&source);
	assert_int_equal(maps.n_lines_left, PERFMAP_LINES_MAX - 2);
	perfmaps_deinit(&maps);
	tempdir_remove(dir);
}

/* The lines are parsed once, and not once for each piece. */
static void many_pieces(void **state)
{
	enum { PIECES = 2000, LINES = 200000, LINE_SIZE = 20 };
	char *text = malloc(LINES * LINE_SIZE + 1), name[32];
	struct mapfile map = { .size = (size_t)LINES * LINE_SIZE };
	size_t n_lines_left = PERFMAP_LINES_MAX;
	struct perfmap perfmap = { .text = &map, .n_lines_left = &n_lines_left };
	struct perfmap_source *pieces = calloc(PIECES, sizeof(*pieces));
	double seconds;
	clock_t start;

	(void)state;
	assert_true(text && pieces);
	/* A hundred lines a page, in an order that is not that of the addresses. */
	for (unsigned i = 0; i < LINES; i++) {
		const unsigned k = (unsigned)(i * 7919ull % LINES);

		(void)snprintf(text + (size_t)i * LINE_SIZE, LINE_SIZE + 1, "%08x 28 f%06u\n",
			       0x10000000 + k / 100 * PAGE_SIZE + k % 100 * 40, k);
		text[(size_t)(i + 1) * LINE_SIZE - 1] = '\n';
	}
	map.bytes = (const uint8_t *)text;
	for (unsigned i = 0; i < PIECES; i++)
		perfmap_source_init(&pieces[i], &perfmap, 0x10000000 + i * PAGE_SIZE,
				    0x10000000 + (i + 1) * PAGE_SIZE);

	start = clock();
	for (unsigned i = 0; i < PIECES; i++) {
		(void)snprintf(name, sizeof(name), "f%06u", i * 100 + 99);
		symbolat_expect(&pieces[i].source, 0x10000000 + i * PAGE_SIZE + 99 * 40 + 1, name);
	}
	seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
	print_message("%d pieces, %d lines: %.2f s of CPU time\n", PIECES, LINES, seconds);
	assert_true(seconds < 5);
	for (unsigned i = 0; i < PIECES; i++)
		perfmap_source_deinit(&pieces[i]);
	perfmap_deinit(&perfmap);
	free(pieces);
	free(text);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines),
		cmocka_unit_test(too_many_lines),
		cmocka_unit_test(of_a_snapshot),
		cmocka_unit_test(many_pieces),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
