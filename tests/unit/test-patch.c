/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Code as it was noted and as it is now, and what is said of the difference. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "decoder/jit/jitchange.h"

#define ADDRESS 0x1000

struct row {
	const char *name;
	size_t size;
	uint8_t noted[48], now[48];
	const char *expected; /* offset+size of each change; of a link, where it leads */
	size_t n_bytes;
};

#define NOPS14 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90

static const struct row rows[] = {
	{ "the same", 3, { 0x31, 0xc0, 0xc3 }, { 0x31, 0xc0, 0xc3 }, "", 0 },
	{ "a number",
	  7,
	  { 0x90, 0xb8, 1, 0, 0, 0, 0xc3 },
	  { 0x90, 0xb8, 9, 0, 0, 0, 0xc3 },
	  "1+5 ",
	  1 },
	{ "jmp rel32",
	  6,
	  { 0x90, 0xe9, 0, 0, 0, 0 },
	  { 0x90, 0xe9, 0xfa, 0xff, 0, 0 },
	  "1+5>11000 ",
	  2 },
	{ "jge rel32, back",
	  7,
	  { 0x0f, 0x8d, 1, 0, 0, 0, 0xc3 },
	  { 0x0f, 0x8d, 0xfa, 0xff, 0xff, 0xff, 0xc3 },
	  "0+6>1000 ",
	  4 },
	{ "call rel32", 5, { 0xe8, 0, 0, 0, 0 }, { 0xe8, 0, 1, 0, 0 }, "0+5>1105 ", 1 },
	{ "jmp rel8", 3, { 0xeb, 0x06, 0x90 }, { 0xeb, 0x01, 0x90 }, "0+2>1003 ", 1 },
	{ "another condition is no link",
	  6,
	  { 0x0f, 0x8d, 1, 0, 0, 0 },
	  { 0x0f, 0x8c, 1, 0, 0, 0 },
	  "0+6 ",
	  1 },
	{ "a call in place of a jmp", 5, { 0xe9, 0, 0, 0, 0 }, { 0xe8, 0, 0, 0, 0 }, "0+5 ", 1 },
	{ "two links",
	  10,
	  { 0xe9, 0, 0, 0, 0, 0xe9, 0, 0, 0, 0 },
	  { 0xe9, 1, 0, 0, 0, 0xe9, 2, 0, 0, 0 },
	  "0+5>1006 5+5>100c ",
	  2 },
	{ "no instruction", 2, { 0x06, 0x90 }, { 0x0e, 0x90 }, "0+1 ", 1 },
	{ "cut off in an instruction", 3, { 0x90, 0xe9, 0 }, { 0x90, 0xe9, 1 }, "2+1 ", 1 },
	{ "replaced as a whole, with bytes between that are the same by chance",
	  8,
	  { 0x48, 0x8d, 0x15, 9, 0, 0, 0, 0xc3 },
	  { 0xeb, 0x1e, 0x66, 0x0f, 0, 0, 0, 0xc3 },
	  "0+7 ",
	  4 },
	{ "less than an instruction's length is between",
	  18,
	  { 0x90, 0x90, NOPS14, 0x90, 0x90 },
	  { 0x90, 0x91, NOPS14, 0x91, 0x90 },
	  "1+16 ",
	  2 },
	{ "more is between",
	  19,
	  { 0x90, 0x90, NOPS14, 0x90, 0x90, 0x90 },
	  { 0x90, 0x91, NOPS14, 0x90, 0x91, 0x90 },
	  "1+1 17+1 ",
	  2 },
};

static void every_row(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		_cleanup_(patches_deinit) struct patches patches;
		_cleanup_(freep) char *text = NULL;
		size_t size;
		FILE *f = open_memstream(&text, &size);

		print_message("  %s\n", rows[i].name);
		assert_int_equal(
		    patches_find(rows[i].noted, rows[i].now, rows[i].size, ADDRESS, &patches), 0);
		for (size_t k = 0; k < patches.list.n; k++) {
			const struct patch *p = &patches.list.items[k];

			fprintf(f, "%zu+%zu", p->offset, p->size);
			if (p->is_link)
				fprintf(f, ">%" PRIx64, p->target);
			fputc(' ', f);
		}
		fclose(f);
		assert_string_equal(text, rows[i].expected);
		assert_int_equal(patches.n_bytes, rows[i].n_bytes);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = { cmocka_unit_test(every_row) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
