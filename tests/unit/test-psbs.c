/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* PSBs and times, found in PT without decoding it. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

#include "decoder/pt/psbs.h"

#define PSB                                                                                       \
	0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, \
	    0x82
#define PSBEND   0x02, 0x23
#define OVF      0x02, 0xf3
#define TSC(n)   0x19, (n), 0, 0, 0, 0, 0, 0
#define TMA(ctc) 0x02, 0x73, (ctc), 0, 0, 0, 0
#define MTC(n)   0x59, (n)
#define PAD      0x00
#define TNT      0x06

static const struct row {
	const char *name;
	size_t size;
	uint8_t bytes[96];
	uint64_t first, time, second, last_time; /* offsets of the first two PSBs; times */
} rows[] = {
#define BYTES(...) .size = sizeof((uint8_t[]){ __VA_ARGS__ }), .bytes = { __VA_ARGS__ }
	{ "nothing", .size = 0 },
	{ "no PSB", BYTES(PAD, TSC(5), TNT), .first = 10, .second = 10 },
	{ "one", BYTES(PSB, TSC(5), PSBEND, TNT), .second = 27, .time = 5, .last_time = 5 },
	{ "behind something", BYTES(TNT, TNT, PSB, PAD, TSC(5), PSBEND), .first = 2, .second = 29,
	  .time = 5, .last_time = 5 },
	{ "two", BYTES(PSB, TSC(5), PSBEND, TNT, PSB, TSC(9), PSBEND), .second = 27, .time = 5,
	  .last_time = 9 },
	{ "without time", BYTES(PSB, PSBEND, TSC(7), PSB, OVF, TSC(8)), .second = 26,
	  .last_time = 8 },
	{ "no time at all", BYTES(PSB, PSBEND, TNT), .second = 19 },
	{ "cut off", BYTES(PSB, 0x19, 1, 0), .second = 19 },
	{ "later packets of time", BYTES(PSB, TSC(5), TMA(3), PSBEND, TNT, MTC(4), MTC(6), TNT),
	  .second = 39, .time = 5, .last_time = 5 + 3 * 7 },
	{ "bad bytes", BYTES(PSB, TSC(5), PSBEND, 0x02, 0xff, TSC(9)), .second = 36, .time = 5,
	  .last_time = 5 },
};

static void find(void **state)
{
	/* An MTC each 1 tick of a crystal that has 7 ticks of the TSC. */
	static const struct tsc tsc = { .mtc_freq = 0, .eax = 1, .ebx = 7 };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct row *row = &rows[i];
		const struct fileparts pt = fileparts_in_memory(row->bytes, row->size);
		uint64_t first, second, time, last;
		struct psbs psbs;

		psbs_init(&psbs, &pt);
		first = psbs_next(&psbs, 0);
		time = first < row->size ? psbs_time(&psbs, first) : 0;
		second = psbs_next(&psbs, first + 1);
		last = psbs_last_time(&psbs, &tsc);
		assert_int_equal(psbs_error(&psbs), 0);
		psbs_deinit(&psbs);
		if (first != row->first || time != row->time || second != row->second ||
		    last != row->last_time)
			fail_msg("%s: %ju at %ju, %ju, last %ju", row->name, (uintmax_t)first,
				 (uintmax_t)time, (uintmax_t)second, (uintmax_t)last);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(find) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
