/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Printable: what goes out as it is, and what does not. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>

#include "base/base.h"
#include "base/printable.h"

static void rows(void **state)
{
	static const struct {
		const char *text, *cleaned;
	} rows[] = {
		{ "", "" },
		{ "a ~", "a ~" },
		{ "\n\t\033\x7f", "????" },
		/* of every length the first and the last */
		{ "\xc2\xa0 \xdf\xbf", "\xc2\xa0 \xdf\xbf" },
		{ "\xe0\xa0\x80 \xed\x9f\xbf \xee\x80\x80 \xef\xbf\xbf",
		  "\xe0\xa0\x80 \xed\x9f\xbf \xee\x80\x80 \xef\xbf\xbf" },
		{ "\xf0\x90\x80\x80 \xf4\x8f\xbf\xbf", "\xf0\x90\x80\x80 \xf4\x8f\xbf\xbf" },
		/* C1: in UTF-8, and bare */
		{ "\xc2\x80 \xc2\x85 \xc2\x9b"
		  "2J \xc2\x9f",
		  "?? ?? ??2J ??" },
		{ "\x80 \x85 \x9b"
		  "2J \x9f",
		  "? ? ?2J ?" },
		/* what has such bytes in it, and is another character */
		{ "\xe2\x80\x9c \xc4\x9b \xf0\x9f\x9b\x9f",
		  "\xe2\x80\x9c \xc4\x9b \xf0\x9f\x9b\x9f" },
		/* no UTF-8: bare bytes, too long a form, surrogates, too large, cut off */
		{ "\xa0 \xff \xc0\x9b \xc1\xbf", "? ? ?? ??" },
		{ "\xe0\x82\x9b \xf0\x80\x82\x9b", "??? ????" },
		{ "\xed\xa0\x80 \xf4\x90\x80\x80 \xf5\x80\x80\x80", "??? ???? ????" },
		{ "\xe2\x80 \xe2\x80", "?? ??" },
		{ "\xc3\x28 \xf0\x9f\x9b\x28", "?( ??"
					       "?(" },
		/* a cut one must not hide what follows */
		{ "\xe2\x80\xc2\x9b\xe2\x1b", "?????"
					      "?" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char text[64];

		(void)snprintf(text, sizeof(text), "%s", rows[i].text);
		printable_clean(text, strlen(text));
		assert_string_equal(text, rows[i].cleaned);
	}
}

/* Nothing behind the size is looked at, nor changed. */
static void ends(void **state)
{
	char text[] = "\xc3\xa4\xc3\xa4";

	(void)state;
	printable_clean(text, 3);
	assert_string_equal(text, "\xc3\xa4?\xa4");
	assert_int_equal(printable_size("a", 0), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows),
		cmocka_unit_test(ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
