/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The TSC as packets tell it: each row is a stream, and the time behind each of its packets. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdbool.h>
#include <string.h>

#include "base/base.h"
#include "decoder/pt/tsc.h"
#include "tests/lib/packets.h"

#define LINES_MAX 12

/* Four TSC ticks are one of the crystal's, and an MTC has its bits from the one of @mtc_freq on. */
struct row {
	const char *name;
	uint8_t mtc_freq;
	bool loses_cycles, in_psb;
	const char *lines[LINES_MAX];
	uint64_t now[LINES_MAX];
};

static const struct row rows[] = {
	{ "a TSC has all of it",
	  3,
	  false,
	  false,
	  { "tsc 1000", "pad", "tsc 2000" },
	  { 0x1000, 0x1000, 0x2000 } },
	{ "MTC packets carry on the count of the TMA",
	  3,
	  false,
	  false,
	  { "tsc 1000", "tma 40 0", "mtc 9", "mtc a" },
	  { 0x1000, 0x1000, 0x1020, 0x1040 } },
	{ "the TMA says how old its count is",
	  3,
	  false,
	  false,
	  { "tsc 1000", "tma 40 4", "mtc 9" },
	  { 0x1000, 0x1000, 0x101c } },
	{ "the count goes round",
	  3,
	  false,
	  false,
	  { "tsc 1000", "tma 7f8 0", "mtc 0" },
	  { 0x1000, 0x1000, 0x1020 } },
	{ "an MTC has bits that the TMA had not",
	  10,
	  false,
	  false,
	  { "tsc 1000", "tma 400 0", "mtc 42" },
	  { 0x1000, 0x1000, 0x2000 } },
	{ "an MTC without a TMA says nothing",
	  3,
	  false,
	  false,
	  { "tsc 1000", "mtc 9", "mtc a" },
	  { 0x1000, 0x1000, 0x1000 } },
	{ "cycles of the nominal length",
	  3,
	  false,
	  false,
	  { "tsc 1000", "cbr 8", "cyc 8", "cyc 8" },
	  { 0x1000, 0x1000, 0x1010, 0x1020 } },
	{ "cycles without a length", 3, false, false, { "tsc 1000", "cyc 8" }, { 0x1000, 0x1000 } },
	{ "cycles as long as they were between two MTC packets",
	  3,
	  false,
	  false,
	  { "tsc 1000", "tma 40 0", "cyc 8", "mtc 9", "cyc 8", "mtc a", "cyc 4" },
	  { 0x1000, 0x1000, 0x1000, 0x1020, 0x1020, 0x1040, 0x1050 } },
	{ "MTC packets that do not follow a CYC measure no cycles",
	  3,
	  false,
	  false,
	  { "tsc 1000", "tma 40 0", "cbr 10", "cyc 8", "pad", "mtc 9", "cyc 20", "pad", "mtc a",
	    "cyc 20" },
	  { 0x1000, 0x1000, 0x1000, 0x1008, 0x1008, 0x1020, 0x1028, 0x1028, 0x1040, 0x1048 } },
	{ "cycles of a CYC before the TMA and its MTC are over",
	  3,
	  false,
	  false,
	  { "tsc 1000", "cbr 10", "cyc 8", "pad", "tsc 1010", "tma 44 0", "mtc 9", "cyc 20" },
	  { 0x1000, 0x1000, 0x1008, 0x1008, 0x1010, 0x1010, 0x1020, 0x1028 } },
	{ "cycles counted from before the MTC are over",
	  3,
	  false,
	  false,
	  { "tsc 1000", "tma 40 0", "cbr 10", "mtc 9", "cyc 28" },
	  { 0x1000, 0x1000, 0x1000, 0x1020, 0x1028 } },
	{ "another frequency",
	  3,
	  false,
	  false,
	  { "tsc 1000", "cbr 8", "cyc 8", "cbr 4", "cyc 8" },
	  { 0x1000, 0x1000, 0x1010, 0x1010, 0x1030 } },
	{ "two PSB+ say how long cycles are",
	  3,
	  false,
	  true,
	  { "tsc 1000", "cyc 10", "tsc 1040", "cyc 4" },
	  { 0x1000, 0x1000, 0x1040, 0x1050 } },
};

static void every_row(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct row *row = &rows[i];
		struct tsc tsc = { .mtc_freq = row->mtc_freq, .nom_freq = 16, .eax = 1, .ebx = 4 };
		uint64_t at = 1;

		print_message("  %s\n", row->name);
		for (size_t k = 0; k < LINES_MAX && row->lines[k]; k++) {
			struct packet_reader reader = {};
			struct packet packet;
			uint8_t bytes[64];
			const int n = packets_write(row->lines[k], bytes);

			assert_true(n > 0);
			assert_int_equal(packet_read(&reader, bytes, (size_t)n, &packet), 0);
			tsc_take(&tsc, &packet, row->in_psb, at);
			at += (uint64_t)n;
			assert_int_equal(tsc.now, row->now[k]);
		}
	}
}

/* What may be written in the packets' fields, or in their configuration, is never divided by. */
static void nonsense(void **state)
{
	static const struct tsc configs[] = {
		{ .mtc_freq = 3 },
		{ .mtc_freq = 16, .eax = 1 },
		{ .mtc_freq = 17, .eax = 1, .ebx = 1, .nom_freq = 1 },
		{ .mtc_freq = 255, .eax = UINT32_MAX, .ebx = UINT32_MAX, .nom_freq = 255 },
	};
	static const enum packet_type types[] = { PACKET_TSC, PACKET_TMA, PACKET_CBR, PACKET_CYC,
						  PACKET_MTC, PACKET_CYC, PACKET_MTC, PACKET_CYC };
	static const uint64_t values[] = { 0, 1, 0xff, UINT64_MAX };

	(void)state;
	for (size_t c = 0; c < ARRAY_LEN(configs); c++) {
		struct tsc tsc = configs[c];

		for (size_t i = 0; i < 4096; i++) {
			const struct packet packet = { .type = types[i % 8],
						       .value = values[i / 8 % 4],
						       .extra = values[i / 32 % 4] };

			tsc_take(&tsc, &packet, i & 1024, i / 2);
			if (i % 700 == 0)
				tsc_take_psb(&tsc, i / 2);
			if (i % 1100 == 0)
				tsc_forget_rate(&tsc);
		}
		tsc_forget(&tsc);
		assert_false(tsc.has_tsc);
		assert_int_equal(tsc.mtc_freq, configs[c].mtc_freq);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_row),
		cmocka_unit_test(nonsense),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
