/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* TSC: real conversions, both ways, and what lies at the edges of 64 bits. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/base.h"
#include "util/perf/tsc.h"

/* Of real machines; "zero" is negative in two of them. */
static const struct tsc_conv skylake_x = { true, 31, 581029125, UINT64_C(18444502336406842448) };
static const struct tsc_conv skylake_y = { true, 31, 1789569706, UINT64_C(18446744041015200657) };
static const struct tsc_conv ns = { true, 0, 1, 0 };
static const struct tsc_conv later = { true, 10, 1024, 1000000 };
static const struct tsc_conv widest = { true, 32, UINT32_MAX, 0 };

static void to_ns(void **state)
{
	static const struct {
		const char *name;
		const struct tsc_conv *conv;
		uint64_t tsc, ns;
	} rows[] = {
		{ "one to one", &ns, 12345, 12345 },
		{ "one to one, the last", &ns, UINT64_MAX, UINT64_MAX },
		{ "zero is an offset", &later, 5, 1000005 },
		{ "TSC 0 is a negative time", &skylake_x, 0, UINT64_C(18444502336406842448) },
		{ "the last TSC before time 0", &skylake_x, UINT64_C(8285461078529521),
		  UINT64_MAX },
		{ "the sum wraps to 0", &skylake_x, UINT64_C(8285461078529522), 0 },
		{ "and goes on", &skylake_x, UINT64_C(8286000000000000), UINT64_C(145812086032) },
		{ "of a recording", &skylake_y, 0xbc4cd584c2, UINT64_C(641258076471) },
		{ "largest remainder", &widest, UINT32_MAX, UINT32_MAX - 1 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		print_message("  %s\n", rows[i].name);
		assert_int_equal(tsc_to_ns(rows[i].conv, rows[i].tsc), rows[i].ns);
	}
}

/* Each TSC of a stretch comes back as the smallest that has its time. */
static void there_and_back(void **state)
{
	static const struct {
		const struct tsc_conv *conv;
		uint64_t from;
	} rows[] = {
		{ &ns, 0 },
		{ &later, 77 },
		{ &skylake_x, UINT64_C(8286000000000000) },
		{ &skylake_y, 0xbc4cd584c2 },
		{ &widest, UINT64_C(1) << 40 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		for (uint64_t tsc = rows[i].from; tsc < rows[i].from + 2000; tsc++) {
			const uint64_t time = tsc_to_ns(rows[i].conv, tsc);
			const uint64_t back = tsc_from_ns(rows[i].conv, time);

			assert_true(back <= tsc);
			assert_int_equal(tsc_to_ns(rows[i].conv, back), time);
			if (back > 0)
				assert_true(tsc_to_ns(rows[i].conv, back - 1) != time);
		}
	}
}

static void ns_to_tsc_at_the_edges(void **state)
{
	static const struct tsc_conv fine = { true, 32, 1, 0 };

	(void)state;
	/* Before TSC 0. */
	assert_int_equal(tsc_from_ns(&later, 999999), 0);
	assert_int_equal(tsc_from_ns(&later, 0), 0);
	assert_int_equal(tsc_from_ns(&later, 1000000), 0);
	assert_int_equal(tsc_from_ns(&later, 1000001), 1);
	/* Time 0 is 26 days after a negative zero. */
	assert_int_equal(tsc_from_ns(&skylake_x, 0), UINT64_C(8285461078529522));
	/* Later than any TSC. */
	assert_int_equal(tsc_from_ns(&fine, INT64_MAX), UINT64_MAX);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(to_ns),
		cmocka_unit_test(there_and_back),
		cmocka_unit_test(ns_to_tsc_at_the_edges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
