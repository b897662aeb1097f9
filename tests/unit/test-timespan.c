/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>

#include "util/timespan.h"

static void spans(void **state)
{
	static const struct {
		const char *text;
		uint64_t ns;
	} rows[] = {
		{ "0", 0 },
		{ "2", 2000000000 },
		{ "500ms", 500000000 },
		{ "7us", 7000 },
		{ "1.5s", 1500000000 },
		{ ".5s", 500000000 },
		{ "10min", UINT64_C(600000000000) },
		{ "1h", UINT64_C(3600000000000) },
		{ "30d", UINT64_C(2592000000000000) },
		{ "2w", UINT64_C(1209600000000000) },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		uint64_t ns;

		assert_int_equal(timespan_parse(rows[i].text, &ns), 0);
		assert_int_equal(ns, rows[i].ns);
	}
}

static void no_spans(void **state)
{
	static const char *const rows[] = { "",    "s",  ".",     "-1s", "+1s", " 1s",
					    "1 s", "1x", "1.2.3", "inf", "nan", "0x1",
					    "1e3", "1S", "1sec",  "1s ", "1m",  "99999999999999w" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		uint64_t ns = 7;

		print_message("  \"%s\"\n", rows[i]);
		assert_int_equal(timespan_parse(rows[i], &ns), -EINVAL);
		assert_int_equal(ns, 7);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(spans),
		cmocka_unit_test(no_spans),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
