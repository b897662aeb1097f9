/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* PSBs and the times around them, in small streams. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/pt/engine.h"
#include "decoder/pt/psbs.h"
#include "tests/lib/packets.h"

#define LINES_MAX 12

/* An MTC each 1 tick of a crystal that has 7 ticks of the TSC. */
static const struct engine_config config = { .cpuid_15_eax = 1, .cpuid_15_ebx = 7 };

struct row {
	const char *name;
	const char *lines[LINES_MAX];
};

static size_t write_row(const struct row *row, uint8_t *to)
{
	size_t size = 0;

	for (size_t i = 0; i < LINES_MAX && row->lines[i]; i++) {
		const int n = packets_write(row->lines[i], to + size);

		assert_true(n > 0);
		size += (size_t)n;
	}
	return size;
}

static const struct psb_row {
	struct row row;
	uint64_t first, time, second, last_time; /* offsets of the first two PSBs; times */
} psb_rows[] = {
	{ { "nothing", .lines = {} }, .first = 0 },
	{ { "no PSB", .lines = { "pad", "tsc 5", "tnt 1" } }, .first = 10, .second = 10 },
	{ { "one", .lines = { "psb", "tsc 5", "psbend", "tnt 1" } },
	  .second = 27,
	  .time = 5,
	  .last_time = 5 },
	{ { "behind something", .lines = { "tnt 1", "tnt 1", "psb", "pad", "tsc 5", "psbend" } },
	  .first = 2,
	  .second = 29,
	  .time = 5,
	  .last_time = 5 },
	{ { "two", .lines = { "psb", "tsc 5", "psbend", "tnt 1", "psb", "tsc 9", "psbend" } },
	  .second = 27,
	  .time = 5,
	  .last_time = 9 },
	{ { "without time", .lines = { "psb", "psbend", "tsc 7", "psb", "ovf", "tsc 8" } },
	  .second = 26,
	  .last_time = 8 },
	{ { "no time at all", .lines = { "psb", "psbend", "tnt 1" } }, .second = 19 },
	{ { "cut off", .lines = { "psb", "bytes 19 01 00" } }, .second = 19 },
	{ { "later packets of time",
	    .lines = { "psb", "tsc 5", "tma 3 0", "psbend", "tnt 1", "mtc 4", "mtc 6", "tnt 1" } },
	  .second = 39,
	  .time = 5,
	  .last_time = 5 + 3 * 7 },
	{ { "bad bytes", .lines = { "psb", "tsc 5", "psbend", "bytes 02 ff", "tsc 9" } },
	  .second = 36,
	  .time = 5,
	  .last_time = 5 },
	{ { "a PSB+ that makes no sense", .lines = { "psb", "tsc 5", "stop", "psbend", "tsc 9" } },
	  .second = 36,
	  .time = 5,
	  .last_time = 9 },
};

/* PSBs and times are found without decoding. */
static void finds_psbs(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(psb_rows); i++) {
		const struct psb_row *row = &psb_rows[i];
		uint8_t bytes[512];
		const size_t size = write_row(&row->row, bytes);
		uint64_t first, second, time, last;
		const struct fileparts pt = fileparts_in_memory(bytes, size);
		struct psbs psbs;

		psbs_init(&psbs, &pt, &config);
		first = psbs_find(&psbs, 0);
		time = first < size ? psbs_time(&psbs, first) : 0;
		second = psbs_find(&psbs, first + 1);
		last = psbs_last_time(&psbs);
		assert_int_equal(psbs_error(&psbs), 0);
		psbs_deinit(&psbs);
		if (first != row->first || time != row->time || second != row->second ||
		    last != row->last_time)
			fail_msg("%s: %ju at %ju, %ju, last %ju", row->row.name, (uintmax_t)first,
				 (uintmax_t)time, (uintmax_t)second, (uintmax_t)last);
	}
}

static const struct later_row {
	struct row row;
	uint64_t time, offset;
} later_rows[] = {
	{ { "nothing", .lines = {} }, .time = 5, .offset = 0 },
	{ { "no PSB", .lines = { "pad", "tsc 9", "tnt 1" } }, .time = 5, .offset = 10 },
	{ { "not later", .lines = { "psb", "tsc 5", "psbend", "tnt 1" } },
	  .time = 5,
	  .offset = 27 },
	{ { "all is later", .lines = { "tnt 1", "psb", "tsc 6", "psbend", "tnt 1" } },
	  .time = 5,
	  .offset = 27 },
	{ { "from a TSC on",
	    .lines = { "psb", "tsc 5", "psbend", "tsc 6", "tnt 1", "tsc 7", "tnt 1" } },
	  .time = 5,
	  .offset = 34 },
	{ { "from a PSB on",
	    .lines = { "psb", "tsc 5", "psbend", "tnt 1", "psb", "tsc 6", "psbend", "tnt 1" } },
	  .time = 5,
	  .offset = 53 },
	{ { "from an MTC on", .lines = { "psb", "tsc 5", "tma 3 0", "psbend", "tnt 1", "mtc 4",
					 "tnt 1", "mtc 5", "tnt 1" } },
	  .time = 12,
	  .offset = 39 },
	{ { "the PSB before it states no time",
	    .lines = { "psb", "psbend", "tnt 1", "tsc 6", "tnt 1" } },
	  .time = 5,
	  .offset = 27 },
	{ { "behind bad bytes", .lines = { "psb", "tsc 5", "psbend", "bytes 02 ff", "tsc 9", "psb",
					   "tsc 8", "psbend", "tnt 1" } },
	  .time = 5,
	  .offset = 62 },
	{ { "never later", .lines = { "psb", "tsc 5", "psbend", "bytes 02 ff", "tsc 9" } },
	  .time = 5,
	  .offset = 36 },
};

/* Where PT is cut off that is later than a time. */
static void finds_later(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(later_rows); i++) {
		const struct later_row *row = &later_rows[i];
		uint8_t bytes[512];
		const struct fileparts pt = fileparts_in_memory(bytes, write_row(&row->row, bytes));
		struct psbs psbs;
		uint64_t offset;

		psbs_init(&psbs, &pt, &config);
		offset = psbs_find_later(&psbs, row->time);
		assert_int_equal(psbs_error(&psbs), 0);
		psbs_deinit(&psbs);
		if (offset != row->offset)
			fail_msg("%s: %ju", row->row.name, (uintmax_t)offset);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_psbs),
		cmocka_unit_test(finds_later),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
