/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Kallsyms: which object a line belongs to, and how long it takes to name the code of many modules.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "decoder/symbol/kallsyms.h"
#include "tests/lib/symbolat.h"

static void names_of_modules(void **state)
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
	struct kallsyms kallsyms = { .text = &file };
	struct kallsyms_source kernel, ext4, xfs, none;

	(void)state;
	kallsyms_source_init(&ext4, &kallsyms, "[ext4]");
	kallsyms_source_init(&kernel, &kallsyms, NULL);
	kallsyms_source_init(&xfs, &kallsyms, "[xfs]");
	kallsyms_source_init(&none, &kallsyms, "[ext]");

	symbolat_expect(&kernel.source, 0xffffffff80ffffff, "");
	symbolat_expect(&kernel.source, 0xffffffff81000000, "startup_64");
	symbolat_expect(&kernel.source, 0xffffffff81000180, "local");
	symbolat_expect(&kernel.source, 0xffffffff81000200, "weak");
	symbolat_expect(&kernel.source, 0xffffffffc0001000, "xfs_open");
	symbolat_expect(&kernel.source, 0xffffffffc0002000, "bpf_prog_1");
	symbolat_expect(&ext4.source, 0xffffffff81000100, "");
	symbolat_expect(&ext4.source, 0xffffffffc0000000, "ext4_open");
	symbolat_expect(&ext4.source, 0xffffffffc0000100, "ext4_close");
	symbolat_expect(&ext4.source, 0xffffffffc0001000, "ext4_last");
	symbolat_expect(&xfs.source, 0xffffffffc0000fff, "");
	symbolat_expect(&xfs.source, 0xffffffffc0002000, "xfs_open");
	symbolat_expect(&none.source, 0xffffffffc0000000, "");
	kallsyms_source_deinit(&ext4);
	kallsyms_source_deinit(&kernel);
	kallsyms_source_deinit(&xfs);
	kallsyms_source_deinit(&none);
	kallsyms_deinit(&kallsyms);
}

/* The text is parsed once, and not once for each module. */
static void many_modules(void **state)
{
	enum { MODULES = 1000, LINES = 100000, LINE_SIZE = 36 };
	char *text = malloc((size_t)LINES * LINE_SIZE + 1), name[32];
	char(*names)[32] = calloc(MODULES, sizeof(*names));
	struct mapfile file = { .size = (size_t)LINES * LINE_SIZE };
	struct kallsyms kallsyms = { .text = &file };
	struct kallsyms_source *modules = calloc(MODULES, sizeof(*modules));
	double seconds;
	clock_t start;

	(void)state;
	assert_true(text && names && modules);
	for (unsigned i = 0; i < LINES; i++)
		(void)snprintf(text + (size_t)i * LINE_SIZE, LINE_SIZE + 1,
			       "ffffffffc%07x t f%07u\t[m%04u]\n", i * 16, i, i % MODULES);
	file.bytes = (const uint8_t *)text;
	for (unsigned i = 0; i < MODULES; i++) {
		(void)snprintf(names[i], sizeof(names[i]), "[m%04u]", i);
		kallsyms_source_init(&modules[i], &kallsyms, names[i]);
	}

	start = clock();
	for (unsigned i = 0; i < MODULES; i++) {
		(void)snprintf(name, sizeof(name), "f%07u", LINES - MODULES + i);
		symbolat_expect(&modules[i].source, 0xffffffffc0000000 + (LINES - MODULES + i) * 16,
				name);
	}
	seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
	print_message("%d modules, %d lines: %.2f s of CPU time\n", MODULES, LINES, seconds);
	assert_true(seconds < 3);
	for (unsigned i = 0; i < MODULES; i++)
		kallsyms_source_deinit(&modules[i]);
	kallsyms_deinit(&kallsyms);
	free(modules);
	free(names);
	free(text);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_of_modules),
		cmocka_unit_test(many_modules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
