/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Ranges of time as users write them. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>

#include "decoder/stream/timerange.h"

#define S UINT64_C(1000000000)

/* The trace ended at 2026-11-22 21:02:03 UTC. */
static const struct timerange_clock ns = { .clock = PTD_CLOCK_NS,
					   .realtime_offset_ns = INT64_C(1795380000) * 1000000000,
					   .end = 1323 * S };
static const struct timerange_clock no_offset = { .clock = PTD_CLOCK_NS, .end = 100 * S };
static const struct timerange_clock no_end = { .clock = PTD_CLOCK_NS, .realtime_offset_ns = 1 };
static const struct timerange_clock ticks = { .clock = PTD_CLOCK_TSC, .end = 1000 };

static const struct {
	const char *text;
	const struct timerange_clock *clock;
	int r;
	uint64_t from, to;
} rows[] = {
	{ "1,2", &ns, 0, 1 * S, 2 * S },
	{ "1.5", &ns, 0, S + S / 2, UINT64_MAX },
	{ "1.,", &ns, 0, S, UINT64_MAX },
	{ ",2.000000001", &ns, 0, 0, 2 * S + 1 },
	{ "12345.678901234,12345.6789012349", &ns, 0, UINT64_C(12345678901234),
	  UINT64_C(12345678901234) },
	{ "3s,4ms", &ns, 0, 3 * S, 4000000 },
	{ "3.5us,4ns", &ns, 0, 3500, 4 },
	{ "-5s", &ns, 0, 1318 * S, UINT64_MAX },
	{ "-5ms,-1.5us", &ns, 0, 1323 * S - 5000000, 1323 * S - 1500 },
	{ "-9999", &ns, 0, 0, UINT64_MAX },
	{ "-5s", &no_end, -ENODATA, 0, 0 },
	{ "2026-11-22 21:02:00.25,2026-11-22T21:02:01Z", &ns, 0, 1320 * S + S / 4, 1321 * S },
	{ "21:02:00,21:02:01.5", &ns, 0, 1320 * S, 1321 * S + S / 2 },
	{ "1999-01-01 00:00:00", &ns, 0, 0, UINT64_MAX },
	{ "21:02:00", &no_offset, -ENODATA, 0, 0 },
	{ "21:02:00", &no_end, -ENODATA, 0, 0 },
	{ "21:02:00", &ticks, -ENODATA, 0, 0 },
	{ "10,20", &ticks, 0, 10, 20 },
	{ "-10", &ticks, 0, 990, UINT64_MAX },
	{ "1.5", &ticks, -EINVAL, 0, 0 },
	{ "1s", &ticks, -EINVAL, 0, 0 },
	{ "", &ns, -EINVAL, 0, 0 },
	{ ",", &ns, -EINVAL, 0, 0 },
	{ "1,2,3", &ns, -EINVAL, 0, 0 },
	{ "x", &ns, -EINVAL, 0, 0 },
	{ "1x", &ns, -EINVAL, 0, 0 },
	{ "1 s", &ns, -EINVAL, 0, 0 },
	{ "1.2.3", &ns, -EINVAL, 0, 0 },
	{ "s", &ns, -EINVAL, 0, 0 },
	{ "--1", &ns, -EINVAL, 0, 0 },
	{ "-", &ns, -EINVAL, 0, 0 },
	{ ".5", &ns, -EINVAL, 0, 0 },
	{ "18446744073709551616", &ticks, -EINVAL, 0, 0 },
	{ "18446744074", &ns, -EINVAL, 0, 0 },
	{ "24:00:00", &ns, -EINVAL, 0, 0 },
	{ "21:60:00", &ns, -EINVAL, 0, 0 },
	{ "21:02", &ns, -EINVAL, 0, 0 },
	{ "21:02:61", &ns, -EINVAL, 0, 0 },
	{ "21:02:03x", &ns, -EINVAL, 0, 0 },
	{ "2026-13-22 21:02:00", &ns, -EINVAL, 0, 0 },
	{ "2026-11-22", &ns, -EINVAL, 0, 0 },
	{ "2026-11-22 21", &ns, -EINVAL, 0, 0 },
};

static void texts(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct timerange range = { .from = 77, .to = 78 };
		const int r = timerange_parse(rows[i].text, rows[i].clock, &range);
		const uint64_t from = rows[i].r < 0 ? 77 : rows[i].from;
		const uint64_t to = rows[i].r < 0 ? 78 : rows[i].to;

		if (r != rows[i].r || range.from != from || range.to != to)
			fail_msg("row %zu, \"%s\": %d, from %ju to %ju", i, rows[i].text, r,
				 (uintmax_t)range.from, (uintmax_t)range.to);
	}
}

static void ends(void **state)
{
	(void)state;
	assert_false(timerange_needs_end("1,2"));
	assert_true(timerange_needs_end("-1"));
	assert_true(timerange_needs_end("1,-1"));
	assert_true(timerange_needs_end("21:02:00"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts),
		cmocka_unit_test(ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
