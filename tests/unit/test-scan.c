/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Where decoding can go on after an error, by packets alone. */

#include "decoder/pt/scan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/failing.h"
#include "tests/lib/packets.h"

#define NONE UINT64_MAX

struct stream {
	uint8_t bytes[1024];
	size_t size;
	uint64_t lines[64]; /* where each begins */
	size_t n;
	struct pt_config config;
};

static void make(struct stream *s, const char *packets)
{
	char text[1024], *rest;

	*s = (struct stream){};
	(void)snprintf(text, sizeof(text), "%s", packets);
	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		const int n = packets_write(line, s->bytes + s->size);

		assert_true(n > 0 && s->n < ARRAY_LEN(s->lines));
		s->lines[s->n++] = s->size;
		s->size += (size_t)n;
	}
	pt_config_init(&s->config);
	s->config.begin = s->bytes;
	s->config.end = s->bytes + s->size;
}

static struct scan *begin(struct stream *s, const char *packets)
{
	struct scan *scan;

	make(s, packets);
	assert_int_equal(scan_new(&s->config, &scan), 0);
	return scan;
}

/* From the second packet on, which is behind the PSB. */
static void points(void **state)
{
	static const struct {
		const char *title, *packets;
		uint64_t
		    ips[3]; /* of one point after the other, up to NONE: the next PSB, or the end */
	} rows[] = {
		{ "packets begin", "psb\npsbend\ntip.pge 401000", { 0x401000, NONE } },
		{ "packets are on already",
		  "psb\nfup 401000\npsbend\ntip 402000",
		  { 0x402000, NONE } },
		{ "packets are off",
		  "psb\npsbend\ntip 402000\ntip.pge 403000",
		  { 0x403000, NONE } },
		{ "only a FUP of PSB+ says that packets are on",
		  "psb\npsbend\nfup 401000\ntip 402000\ntip.pge 403000",
		  { 0x403000, NONE } },
		{ "a FUP says where what follows happened",
		  "psb\nfup 401000\npsbend\nfup 401005\ntip 402000",
		  { 0x402000, NONE } },
		{ "the FUP behind an overflow",
		  "psb\npsbend\novf\nfup 404000\ntip 405000",
		  { 0x404000, 0x405000, NONE } },
		{ "packets end", "psb\nfup 401000\npsbend\ntip.pgd 402000\ntip 403000", { NONE } },
		{ "packets end and begin",
		  "psb\nfup 401000\npsbend\ntip.pgd 402000\ntip.pge 403000\ntip 404000",
		  { 0x403000, 0x404000, NONE } },
		{ "they are off behind an overflow",
		  "psb\nfup 401000\npsbend\novf\ntip 402000\ntip.pge 403000",
		  { 0x403000, NONE } },
		{ "packets begin behind an overflow",
		  "psb\npsbend\novf\ntip.pge 401000\nfup 402000\ntip 403000",
		  { 0x401000, 0x403000, NONE } },
		{ "no address", "psb\nfup 401000\npsbend\ntip0\ntip 402000", { 0x402000, NONE } },
		{ "no address where packets begin",
		  "psb\npsbend\ntip.pge0\ntip 402000",
		  { 0x402000, NONE } },
		{ "none before the next PSB",
		  "psb\npsbend\ntnt 11\npsb\npsbend\ntip.pge 401000",
		  { NONE } },
		{ "what says nothing of it",
		  "psb\nfup 401000\npsbend\ntnt 11\ncyc 3\npad\nmtc 5",
		  { NONE } },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct stream s;
		struct scan *scan = begin(&s, rows[i].packets);
		struct scan_point point = {};
		uint64_t from = s.lines[1];

		print_message("  %s\n", rows[i].title);
		for (size_t k = 0; rows[i].ips[k] != NONE; k++) {
			assert_int_equal(scan_find(scan, from, &point), 0);
			assert_int_equal(point.ip, rows[i].ips[k]);
			assert_true(point.offset > from);
			from = point.offset;
		}
		assert_int_equal(scan_find(scan, from, &point), SCAN_PSB);
		(void)scan_free(scan);
	}
}

/* What was said between where the walk was asked for and the point. */
static void asks(void **state)
{
	static const struct {
		const char *title, *packets;
		size_t from; /* line */
		bool asks, has_paging, non_root;
		uint64_t cr3;
	} rows[] = {
		{ "nothing", "psb\nfup 401000\npsbend\ntnt 1\ntip 402000", 1, false, false, false,
		  0 },
		{ "TSC", "psb\nfup 401000\npsbend\ntsc 5\ntip 402000", 1, true, false, false, 0 },
		{ "MTC", "psb\nfup 401000\npsbend\nmtc 5\ntip 402000", 1, true, false, false, 0 },
		{ "TSC before that", "psb\nfup 401000\npsbend\ntsc 5\ntnt 1\ntip 402000", 4, false,
		  false, false, 0 },
		{ "PIP", "psb\nfup 401000\npsbend\npip 12345000\ntip 402000", 1, true, true, false,
		  0x12345000 },
		{ "PIP before that", "psb\npip 12345000 nr\nfup 401000\npsbend\ntnt 1\ntip 402000",
		  4, false, true, true, 0x12345000 },
		{ "packets begin", "psb\npsbend\ntip.pge 402000", 1, true, false, false, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct stream s;
		struct scan *scan = begin(&s, rows[i].packets);
		struct scan_point point = {};

		print_message("  %s\n", rows[i].title);
		assert_int_equal(scan_find(scan, s.lines[rows[i].from], &point), 0);
		assert_int_equal(point.ip, 0x402000);
		assert_int_equal(point.offset, s.size);
		assert_int_equal(point.asks, rows[i].asks);
		assert_int_equal(point.has_paging, rows[i].has_paging);
		assert_int_equal(point.cr3, rows[i].cr3);
		assert_int_equal(point.non_root, rows[i].non_root);
		(void)scan_free(scan);
	}
}

/* The PSB+ that would stand there has all that was said, and no more. */
static void made(void **state)
{
	static const struct {
		const char *packets, *expected;
	} rows[] = {
		{ "psb\npsbend\ntip.pge 401000", "psb\nfup64 401000\npsbend" },
		{ "psb\ntsc 1234\npsbend\ntip.pge 401000", "psb\ntsc 1234\nfup64 401000\npsbend" },
		{ "psb\ncbr 20\npsbend\ntip.pge 401000", "psb\ncbr 20\nfup64 401000\npsbend" },
		{ "psb\npip 5000 nr\nvmcs 7000\npsbend\ntip.pge 401000",
		  "psb\npip 5000 nr\nvmcs 7000\nfup64 401000\npsbend" },
		{ "psb\nmode.exec 64\npsbend\nmode.exec 32\ntip.pge 401000",
		  "psb\nmode.exec 32\nfup64 401000\npsbend" },
		{ "psb\npsbend\nmode.tsx begin\ntip.pge 401000",
		  "psb\nmode.tsx begin\nfup64 401000\npsbend" },
		{ "psb\npsbend\nmode.tsx begin\nmode.tsx commit\ntip.pge 401000",
		  "psb\nfup64 401000\npsbend" },
		{ "psb\ntsc 5\ncbr 20\nmode.exec 64\nmode.tsx begin\npsbend\novf\nfup 401000",
		  "psb\ntsc 5\ncbr 20\nmode.exec 64\nfup64 401000\npsbend" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct stream s, expected;
		struct scan *scan = begin(&s, rows[i].packets);
		uint8_t bytes[SCAN_PSB_MAX];
		struct scan_point point;

		print_message("  %s\n", rows[i].expected);
		make(&expected, rows[i].expected);
		assert_int_equal(scan_find(scan, s.lines[1], &point), 0);
		assert_int_equal(scan_make_psb(scan, point.ip, bytes), expected.size);
		assert_memory_equal(bytes, expected.bytes, expected.size);
		(void)scan_free(scan);
	}
}

static struct scan *scan_made;

static int make_scan(void *userdata)
{
	const struct stream *s = userdata;

	return scan_new(&s->config, &scan_made);
}

static void is_made(void *userdata)
{
	(void)userdata;
	scan_made = scan_free(scan_made);
}

static void calls_that_fail(void **state)
{
	struct stream s;

	(void)state;
	make(&s, "psb\npsbend");
	failing_each(make_scan, is_made, &s);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(points),
		cmocka_unit_test(asks),
		cmocka_unit_test(made),
		cmocka_unit_test(calls_that_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
