/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Commands in one text, and their words. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "util/words.h"

static void split(void **state)
{
	static const struct {
		const char *text;
		int r;
		const char *words; /* each in brackets */
	} rows[] = {
		{ "", 0, "" },
		{ " \t\n", 0, "" },
		{ "calls", 1, "[calls]" },
		{ "  calls --json  ", 2, "[calls][--json]" },
		{ "a\tb\nc", 3, "[a][b][c]" },
		{ "--function='operator new' x", 2, "[--function=operator new][x]" },
		{ "\"a 'b'\" 'c \"d\"'", 2, "[a 'b'][c \"d\"]" },
		{ "a\\ b \\'c '\\' \"\\\"\"", 4, "[a b]['c][\\][\"]" },
		{ "'' a", 2, "[][a]" },
		{ "a\\", 1, "[a\\]" },
		{ "1 2 3 4", 4, "[1][2][3][4]" },
		{ "1 2 3 4 5", -E2BIG, NULL },
		{ "a 'b", -EINVAL, NULL },
		{ "a \"b", -EINVAL, NULL },
		{ "'a\"", -EINVAL, NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char text[64], joined[128] = "", *words[5];
		size_t size = 0;
		int r;

		(void)snprintf(text, sizeof(text), "%s", rows[i].text);
		r = words_split(text, words, ARRAY_LEN(words));
		if (r != rows[i].r)
			fail_msg("%s: %d", rows[i].text, r);
		if (r < 0)
			continue;
		for (char **word = words; *word; word++)
			size +=
			    (size_t)snprintf(joined + size, sizeof(joined) - size, "[%s]", *word);
		assert_string_equal(joined, rows[i].words);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(split),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
