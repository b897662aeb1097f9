/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Kallsyms: whose the lines are, and how long it takes to name the code of many modules. */

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
	tempdir_make("kallsyms", dir);
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

/* One of the stream's name @name, whose names are in @file. */
static struct object *add_object(struct objects *objects, const char *name,
				 const struct mapfile *file)
{
	struct object *object;

	assert_int_equal(objects_add_memory(objects, page_path, name, 0, &object), 0);
	object->kallsyms = file;
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

static void modules(void **state)
{
	static const char text[] = "0000000000000000 A fixed_percpu_data\n"
				   "ffffffff81000000 T _text\n"
				   "ffffffff81000000 T startup_64\n"
				   "ffffffff81000100 t local\n"
				   "ffffffff81000180 D data\n"
				   "ffffffff81000200 W weak\n"
				   "ffffffffc0000000 t ext4_open\t[ext4]\n"
				   "ffffffffc0001000 t xfs_open\t[xfs]\n"
				   "ffffffffc0000100 T ext4_close\t[ext4]\n"
				   "ffffffffc0000200 t __pfx_ext4\t[ext4]\n"
				   "ffffffffc0000200 t ext4_last\t[ext4]\n"
				   "\n"
				   "nonsense\n"
				   "ffffffffc0002000 t bpf_prog_1\t[bpf]";
	const struct mapfile file = { .bytes = (const uint8_t *)text, .size = sizeof(text) - 1 };
	struct object *kernel, *ext4, *xfs, *none;
	struct resolver *resolver;
	struct objects *objects;

	(void)state;
	assert_int_equal(objects_new(NULL, &objects), 0);
	assert_int_equal(resolver_new(NULL, &resolver), 0);
	ext4 = add_object(objects, "[ext4]", &file);
	kernel = add_object(objects, "[kernel.kallsyms]", &file);
	xfs = add_object(objects, "[xfs]", &file);
	none = add_object(objects, "[ext]", &file);

	expect(resolver, kernel, 0xffffffff80ffffff, "");
	expect(resolver, kernel, 0xffffffff81000000, "startup_64");
	expect(resolver, kernel, 0xffffffff81000180, "local");
	expect(resolver, kernel, 0xffffffff81000200, "weak");
	expect(resolver, kernel, 0xffffffffc0001000, "xfs_open");
	expect(resolver, kernel, 0xffffffffc0002000, "bpf_prog_1");
	expect(resolver, ext4, 0xffffffff81000100, "");
	expect(resolver, ext4, 0xffffffffc0000000, "ext4_open");
	expect(resolver, ext4, 0xffffffffc0000100, "ext4_close");
	expect(resolver, ext4, 0xffffffffc0001000, "ext4_last");
	expect(resolver, xfs, 0xffffffffc0000fff, "");
	expect(resolver, xfs, 0xffffffffc0002000, "xfs_open");
	expect(resolver, none, 0xffffffffc0000000, "");
	resolver_free(resolver);
	objects_free(objects);
}

/* The text is parsed once, and not once for each module. */
static void many_modules(void **state)
{
	enum { MODULES = 1000, LINES = 100000, LINE_SIZE = 36 };
	char *text = malloc((size_t)LINES * LINE_SIZE + 1), name[32];
	struct mapfile file = { .size = (size_t)LINES * LINE_SIZE };
	struct object *objects_of[MODULES];
	struct resolver *resolver;
	struct objects *objects;
	double seconds;
	clock_t start;

	(void)state;
	assert_non_null(text);
	for (unsigned i = 0; i < LINES; i++)
		(void)snprintf(text + (size_t)i * LINE_SIZE, LINE_SIZE + 1,
			       "ffffffffc%07x t f%07u\t[m%04u]\n", i * 16, i, i % MODULES);
	file.bytes = (const uint8_t *)text;
	assert_int_equal(objects_new(NULL, &objects), 0);
	assert_int_equal(resolver_new(NULL, &resolver), 0);
	for (unsigned i = 0; i < MODULES; i++) {
		(void)snprintf(name, sizeof(name), "[m%04u]", i);
		objects_of[i] = add_object(objects, name, &file);
	}

	start = clock();
	for (unsigned i = 0; i < MODULES; i++) {
		(void)snprintf(name, sizeof(name), "f%07u", LINES - MODULES + i);
		expect(resolver, objects_of[i], 0xffffffffc0000000 + (LINES - MODULES + i) * 16,
		       name);
	}
	seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
	print_message("%d modules, %d lines: %.2f s of CPU time\n", MODULES, LINES, seconds);
	assert_true(seconds < 3);
	resolver_free(resolver);
	objects_free(objects);
	free(text);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(modules),
		cmocka_unit_test(many_modules),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
