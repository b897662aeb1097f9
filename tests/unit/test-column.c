/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Column: what stands there, at the ends of each unit. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>

#include "base/base.h"
#include "decoder/sink/column.h"

static void numbers(void **state)
{
	static const struct {
		uint64_t v;
		size_t width;
		char fill;
		const char *expected;
	} rows[] = {
		{ 0, 0, ' ', "0" },
		{ 0, 3, ' ', "  0" },
		{ 1234, 3, ' ', "1234" },
		{ 12, 5, '0', "00012" },
		{ UINT64_MAX, 1, ' ', "18446744073709551615" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char text[COLUMN_MAX] = "";

		*column_number(text, rows[i].v, rows[i].width, rows[i].fill) = '\0';
		assert_string_equal(text, rows[i].expected);
	}
}

/* At each number of digits, the least number and the greatest one. */
static void digits(void **state)
{
	char text[COLUMN_MAX] = "", expected[COLUMN_MAX];

	(void)state;
	for (uint64_t power = 1;; power *= 10) {
		for (uint64_t v = power - 1; v <= power; v++) {
			*column_number(text, v, 0, ' ') = '\0';
			(void)snprintf(expected, sizeof(expected), "%llu", (unsigned long long)v);
			assert_string_equal(text, expected);
		}
		if (power > UINT64_MAX / 10)
			return;
	}
}

static void times(void **state)
{
	static const struct {
		enum ptd_clock clock;
		uint64_t t;
		const char *time, *duration;
	} rows[] = {
		{ PTD_CLOCK_NS, 0, "      0.000000000", "  0.000 us" },
		{ PTD_CLOCK_NS, 1, "      0.000000001", "  0.001 us" },
		{ PTD_CLOCK_NS, 999999, "      0.000999999", "999.999 us" },
		{ PTD_CLOCK_NS, 1000000, "      0.001000000", "  1.000 ms" },
		{ PTD_CLOCK_NS, 999999999, "      0.999999999", "999.999 ms" },
		{ PTD_CLOCK_NS, 1000000000, "      1.000000000", "   1.000 s" },
		{ PTD_CLOCK_NS, 999999999999, "    999.999999999", " 999.999 s" },
		{ PTD_CLOCK_NS, 1000000000000, "   1000.000000000", "    1000 s" },
		{ PTD_CLOCK_NS, UINT64_MAX, "18446744073.709551615", "18446744073 s" },
		{ PTD_CLOCK_TSC, 1234567, "          1234567", "   1234567" },
		{ PTD_CLOCK_NONE, 0, "                -", "         -" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char text[COLUMN_MAX] = "";

		*column_time(text, rows[i].clock, rows[i].t) = '\0';
		assert_string_equal(text, rows[i].time);
		*column_duration(text, rows[i].clock, rows[i].t) = '\0';
		assert_string_equal(text, rows[i].duration);
	}
}

/* What is copied from the time before is what would have been written. */
static void times_in_a_row(void **state)
{
	static const uint64_t rows[] = { 0,          1,          9999,          10000,   10001,
					 19999,      5,          20000,         1234567, 1234568,
					 1239999,    1240000,    99999,         99998,   1000000000,
					 1000009999, UINT64_MAX, UINT64_MAX - 1 };

	(void)state;
	for (enum ptd_clock clock = PTD_CLOCK_NONE; clock <= PTD_CLOCK_NS; clock++) {
		struct column_times row = { .clock = clock };

		for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
			char text[COLUMN_MAX] = "", expected[COLUMN_MAX] = "";

			*column_times_put(&row, text, rows[i]) = '\0';
			*column_time(expected, clock, rows[i]) = '\0';
			assert_string_equal(text, expected);
		}
	}
}

static void percents(void **state)
{
	static const struct {
		uint64_t part, whole;
		const char *expected;
	} rows[] = {
		{ 0, 0, "   0.00" }, { 0, 7, "   0.00" }, { 1, 3, "  33.33" },
		{ 2, 3, "  66.67" }, { 7, 7, " 100.00" }, { UINT64_MAX, UINT64_MAX, " 100.00" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char text[COLUMN_MAX] = "";

		*column_percent(text, rows[i].part, rows[i].whole) = '\0';
		assert_string_equal(text, rows[i].expected);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers),  cmocka_unit_test(digits),
		cmocka_unit_test(times),    cmocka_unit_test(times_in_a_row),
		cmocka_unit_test(percents),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
