/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Perf maps: the lines that make sense, and how long it takes to name many pieces of memory. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "decoder/image/object.h"
#include "decoder/symbol/resolve.h"
#include "tests/lib/tempdir.h"
#include "util/mapfile.h"

#define PAGE_SIZE 4096u

static char dir[TEMPDIR_SIZE];
static char page_path[TEMPDIR_SIZE + 8];

static int setup(void **state)
{
	static const uint8_t page[PAGE_SIZE];

	(void)state;
	tempdir_make("perfmap", dir);
	tempdir_put(dir, "page", page, sizeof(page));
	(void)snprintf(page_path, sizeof(page_path), "%s/page", dir);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	tempdir_remove(dir);
	return 0;
}

/* A page of memory at @address, whose names are in @map. */
static struct object *add_page(struct objects *objects, uint64_t address, const struct mapfile *map)
{
	struct object *object;

	assert_int_equal(objects_add_memory(objects, page_path, "[anon]", address, &object), 0);
	object->perf_map = map;
	return object;
}

static void expect(struct resolver *resolver, const struct object *object, uint64_t address,
		   const char *name)
{
	const struct ptd_symbol *const *symbols;
	uint32_t symbol;
	uint64_t end;
	size_t n;

	assert_int_equal(resolver_find(resolver, object, address, &symbol, &end), 0);
	symbols = resolver_symbols(resolver, &n);
	if (strcmp(symbol == PTD_NO_SYMBOL ? "" : symbols[symbol]->name, name) != 0)
		fail_msg("%#llx: expected '%s', found '%s'", (unsigned long long)address, name,
			 symbol == PTD_NO_SYMBOL ? "" : symbols[symbol]->name);
}

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
	struct resolver *resolver;
	struct objects *objects;
	struct object *low, *high, *none;

	(void)state;
	assert_int_equal(objects_new(NULL, &objects), 0);
	assert_int_equal(resolver_new(NULL, &resolver), 0);
	high = add_page(objects, 0x2000, &map);
	low = add_page(objects, 0x1000, &map);
	none = add_page(objects, 0x1000, &empty);

	expect(resolver, low, 0x1000, "");
	expect(resolver, low, 0x1010, "first");
	expect(resolver, low, 0x101f, "first");
	expect(resolver, low, 0x1020, "JS:~a b");
	expect(resolver, low, 0x1040, "");
	expect(resolver, low, 0x1050, "no newline");
	expect(resolver, low, 0x10a0, "");
	expect(resolver, low, 0x1ff0, "capitals");
	expect(resolver, low, 0x1f00, "begins before the page");
	expect(resolver, high, 0x2000, "");
	expect(resolver, high, 0x2010, "second");
	expect(resolver, high, 0x2fff, "reaches out of the page");
	expect(resolver, none, 0x1010, "");
	resolver_free(resolver);
	objects_free(objects);
}

/* Each line is looked at once, and not once for each piece. */
static void many_pieces(void **state)
{
	enum { PIECES = 2000, LINES = 200000, LINE_SIZE = 20 };
	char *text = malloc(LINES * LINE_SIZE + 1), name[32];
	struct mapfile map = { .size = (size_t)LINES * LINE_SIZE };
	struct object *objects_of[PIECES];
	struct resolver *resolver;
	struct objects *objects;
	double seconds;
	clock_t start;

	(void)state;
	assert_non_null(text);
	/* A hundred lines a page, in an order that is not that of the addresses. */
	for (unsigned i = 0; i < LINES; i++) {
		const unsigned k = (unsigned)(i * 7919ull % LINES);

		(void)snprintf(text + (size_t)i * LINE_SIZE, LINE_SIZE + 1, "%08x 28 f%06u\n",
			       0x10000000 + k / 100 * PAGE_SIZE + k % 100 * 40, k);
		text[(size_t)(i + 1) * LINE_SIZE - 1] = '\n';
	}
	map.bytes = (const uint8_t *)text;
	assert_int_equal(objects_new(NULL, &objects), 0);
	assert_int_equal(resolver_new(NULL, &resolver), 0);
	for (unsigned i = 0; i < PIECES; i++)
		objects_of[i] = add_page(objects, 0x10000000 + i * PAGE_SIZE, &map);

	start = clock();
	for (unsigned i = 0; i < PIECES; i++) {
		(void)snprintf(name, sizeof(name), "f%06u", i * 100 + 99);
		expect(resolver, objects_of[i], 0x10000000 + i * PAGE_SIZE + 99 * 40 + 1, name);
	}
	seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
	print_message("%d pieces, %d lines: %.2f s of CPU time\n", PIECES, LINES, seconds);
	assert_true(seconds < 5);
	resolver_free(resolver);
	objects_free(objects);
	free(text);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines),
		cmocka_unit_test(many_pieces),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
