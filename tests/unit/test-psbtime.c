/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

#include "daemon/snapshot/cpucopy.h"

#define PSB     "\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82"
#define TSC     "\x19\x01\x02\x03\x04\x05\x06\x07"
#define TSC2    "\x19\x11\x12\x13\x14\x15\x16\x17"
#define PAD     "\0\0\0"
#define CBR     "\x02\x03\x20\0"
#define PSBEND  "\x02\x23"
#define VALUE   UINT64_C(0x07060504030201)
#define VALUE_2 UINT64_C(0x17161514131211)

static void finding(void **state)
{
	static const struct {
		const char *bytes;
		size_t size;
		uint64_t tsc; /* 0: none is found */
	} rows[] = {
#define ROW(bytes, tsc)            \
	{                          \
		bytes,             \
		sizeof(bytes) - 1, \
		tsc,               \
	}
		ROW("", 0),
		ROW(PSB TSC, VALUE),
		ROW(PSB PAD TSC CBR PSBEND, VALUE),
		/* The first one that has a time. */
		ROW("\x99\x01" PSB TSC PSBEND PSB TSC2 PSBEND, VALUE),
		ROW(PSB CBR PSBEND PSB TSC2 PSBEND, VALUE_2),
		/* What is before a PSB may be anything, half a PSB too. */
		ROW(TSC "\x02\x82\x02\x82\x02\x82" PAD PSB TSC2, VALUE_2),
		ROW("\x82\x02\x82" PSB TSC2, VALUE_2),
		/* Cut off. */
		ROW(PSB, 0),
		ROW(PSB PAD, 0),
		ROW(PSB "\x19\x01\x02\x03\x04\x05\x06", 0),
		ROW("\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02" TSC, 0),
		ROW(PSB CBR TSC, 0),
		ROW(TSC CBR, 0),
#undef ROW
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		/* Of its own size, so that a read behind it is seen. */
		_cleanup_(freep) uint8_t *copy = malloc(rows[i].size ? rows[i].size : 1);
		uint64_t tsc = 7;

		print_message("  row %zu\n", i);
		memcpy(copy, rows[i].bytes, rows[i].size);
		assert_int_equal(psbtime_find(copy, rows[i].size, &tsc), rows[i].tsc != 0);
		assert_int_equal(tsc, rows[i].tsc ? rows[i].tsc : 7);
	}
}

/* The packet has not all bits of the TSC. */
static void upper_bits(void **state)
{
	static const struct {
		uint64_t low, now, tsc;
	} rows[] = {
		{ 5, 5, 5 },
		{ 5, 1000, 5 },
		{ 0, UINT64_C(3) << 56, UINT64_C(3) << 56 },
		{ UINT64_C(0xffffffffffffff), (UINT64_C(3) << 56) + 9, (UINT64_C(3) << 56) - 1 },
		{ 9, (UINT64_C(3) << 56) + 9, (UINT64_C(3) << 56) + 9 },
		{ 10, (UINT64_C(3) << 56) + 9, (UINT64_C(2) << 56) + 10 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_int_equal(psbtime_tsc(rows[i].low, rows[i].now), rows[i].tsc);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(finding),
		cmocka_unit_test(upper_bits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
