/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What libipt reads in the place of packets that it does not know, window by window. */

#include "decoder/pt/ipt_copy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "decoder/pt/errata.h"
#include "tests/lib/packets.h"

#define GUARD 0xd9

struct bytes {
	uint8_t at[512];
	size_t n;
};

static struct bytes write_packets(const char *packets)
{
	struct bytes bytes = {};
	char text[512], *rest;

	(void)snprintf(text, sizeof(text), "%s", packets);
	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		const int n = packets_write(line, bytes.at + bytes.n);

		assert_true(n > 0 && bytes.n + (size_t)n <= sizeof(bytes.at) - 64);
		bytes.n += (size_t)n;
	}
	return bytes;
}

/* Copy all, as libipt would: what it finds behind the bytes that are there is an unknown packet. */
static void copy_all(struct ipt_copy *copy)
{
	int r = ipt_copy_begin(copy, 0, NULL, 0);

	while (r == 0 && copy->end < copy->size && !copy->is_bad) {
		const uint64_t end = copy->end;

		assert_int_equal(copy->bytes[end], GUARD);
		assert_int_equal(ipt_copy_go_on(copy, end - 1, end), -EBADMSG);
		r = ipt_copy_go_on(copy, end, end);
		assert_true(copy->end > end || copy->is_bad);
	}
	assert_int_equal(r, 0);
}

#define ROW(text, copied, ...)                                       \
	{                                                            \
		.packets = (text), .expected = (copied), __VA_ARGS__ \
	}

static const struct {
	const char *packets, *expected;
	uint32_t errata;
	bool has_events;
} rows[] = {
	ROW("psb\npsbend\ntip.pge 401000\ntnt 101\ntip 402000\ntip.pgd0",
	    "psb\npsbend\ntip.pge 401000\ntnt 101\ntip 402000\ntip.pgd0"),
	/* event trace */
	ROW("cfe 1 e\nevd 0 1234\ntnt 1",
	    "bytes 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00\ntnt 1"),
	ROW("cfe 1 e ip\nfup 401000\ntip 402000", "bytes 00 00 00 00\nfup 401000\ntip 402000"),
	ROW("tip.pgd0\ncfe 1 e ip\nfup 401000\ntip.pge 401000\ncfe 1 e ip\nfup 401000",
	    "tip.pgd0\nbytes 02 e2 00 00\nfup 401000\ntip.pge 401000\nbytes 00 00 00 00\nfup "
	    "401000"),
	ROW("cfe 2 0 ip\nfup 401000\ntip 402000", "bytes 02 e2 00 00\nfup 401000\ntip 402000"),
	ROW("cfe 7 0 ip\ntsc 7\nfup 401000", "bytes 02 e2 00 00\ntsc 7\nfup 401000"),
	ROW("cfe 2 0 ip\novf\nfup 401000", "bytes 00 00 00 00\novf\nfup 401000"),
	ROW("cfe 2 0 ip\ntsc 7\novf\nfup 401000", "bytes 00 00 00 00\ntsc 7\novf\nfup 401000"),
	ROW("psb\ncfe 2 0 ip\nfup 401000\npsbend", "psb\nbytes 00 00 00 00\nfup 401000\npsbend"),
	/* PEBS records */
	ROW("bbp 1\nbip 2 11\nbip 3 12\nbep\ntnt 1",
	    "bytes 00 00 00 00 00 00 00 00 00 00 00 00\nbytes 00 00 00 00 00 00 00 00 00 00 "
	    "00\ntnt 1"),
	ROW("bbp 1 4\nbip 2 11\nbep ip\nfup 401000",
	    "bytes 00 00 00 00 00 00 00 00 02 e2\nfup 401000"),
	/* triggers */
	ROW("trig 1\ntnt 1", "bytes 00 00 00\ntnt 1"),
	ROW("trig 1 5\ntnt 1", "bytes 00 00 00 00 00\ntnt 1"),
	ROW("trig 1 ip 0\nfup 401000", "bytes 02 e2 00 00 00\nfup 401000"),
	/* power events */
	ROW("mwait 20 1\nfup 401000\npwre 6 0\nexstop ip\nfup 401002",
	    "bytes 02 e2 00 00 00 00 00 00 00 00\nfup 401000\npwre 6 0\nexstop ip\nfup 401002"),
	ROW("mwait 20 1\nexstop ip\nfup 401002",
	    "bytes 00 00 00 00 00 00 00 00 00 00\nexstop ip\nfup 401002"),
	ROW("mwait 20 1\nexstop\ntip.pge 401000\nfup 401002",
	    "bytes 00 00 00 00 00 00 00 00 00 00\nexstop\ntip.pge 401000\nfup 401002"),
	ROW("mwait 20 1\ntip.pge 401000\nfup 401002",
	    "bytes 00 00 00 00 00 00 00 00 00 00\ntip.pge 401000\nfup 401002"),
	/* one behind the other */
	ROW("exstop ip\nfup 401000\nbbp 1\nbep ip\nfup 401000\nfup 401000",
	    "exstop ip\nfup 401000\nbytes 00 00 00 02 e2\nfup 401000\nfup 401000"),
	/* the interrupt flag */
	ROW("psb\npsbend\nmode.exec 64 if\nfup 401000\ntnt 1",
	    "psb\npsbend\nexstop ip\nfup 401000\ntnt 1", .has_events = true),
	ROW("psb\npsbend\nmode.exec 64 if\nfup 401000\ntnt 1",
	    "psb\npsbend\nmode.exec 64 if\nfup 401000\ntnt 1"),
	ROW("mode.exec 64\ntsc 7\ncyc 3\nfup 401000\ntnt 1",
	    "exstop ip\ntsc 7\ncyc 3\nfup 401000\ntnt 1", .has_events = true),
	ROW("psb\nmode.exec 64 if\nfup 401000\npsbend", "psb\nmode.exec 64 if\nfup 401000\npsbend",
	    .has_events = true),
	ROW("ovf\nmode.exec 64\nfup 401000", "ovf\nmode.exec 64\nfup 401000", .has_events = true),
	ROW("mode.exec 64\ntnt 1\nfup 401000", "mode.exec 64\ntnt 1\nfup 401000",
	    .has_events = true),
	ROW("mode.exec 64\nexstop ip\nfup 401000", "mode.exec 64\nexstop ip\nfup 401000",
	    .has_events = true),
	/* what an erratum has spoiled */
	ROW("bytes 02 73 01 00 80 00 00\npad\ntnt 1", "bytes 00 00 00 00 00 00 00 00\ntnt 1",
	    .errata = ERRATUM_SKZ84),
	/* the end inside a packet */
	ROW("tnt 1\nbytes 02 53 01", "tnt 1\nbytes 00 00 00"),
	ROW("tnt 1\nbytes 71 01 02", "tnt 1\nbytes 71 01 02"),
};

static void every_row(void **state)
{
	static const uint64_t windows[] = { 40, 64, 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows) * ARRAY_LEN(windows); i++) {
		const size_t row = i / ARRAY_LEN(windows);
		const struct bytes in = write_packets(rows[row].packets);
		const struct bytes out = write_packets(rows[row].expected);
		const struct fileparts pt = fileparts_in_memory(in.at, in.n);
		struct ipt_copy copy;

		assert_int_equal(ipt_copy_init(&copy, &pt, windows[i % ARRAY_LEN(windows)],
					       rows[row].errata, rows[row].has_events),
				 0);
		copy_all(&copy);
		print_message("  %s\n", rows[row].packets);
		assert_int_equal(in.n, out.n);
		assert_memory_equal(copy.bytes, out.at, out.n);
		ipt_copy_deinit(&copy);
	}
}

/* What is no packet is one that libipt does not know, and nothing follows. */
static void no_packet(void **state)
{
	const struct bytes in = write_packets("psb\npsbend\ntnt 1\nbytes 02 ff\ntnt 1");
	const struct fileparts pt = fileparts_in_memory(in.at, in.n);
	struct ipt_copy copy;

	(void)state;
	assert_int_equal(ipt_copy_init(&copy, &pt, 0, 0, false), 0);
	assert_int_equal(ipt_copy_begin(&copy, 0, NULL, 0), 0);
	assert_int_equal(copy.end, in.n - 3);
	assert_int_equal(copy.bytes[copy.end], GUARD);
	assert_int_equal(ipt_copy_go_on(&copy, copy.end, 0), -EBADMSG);
	ipt_copy_deinit(&copy);
}

/* A PSB+ takes the place of bytes that are used up. */
static void begins_anew(void **state)
{
	const struct bytes in = write_packets("pad\npad\npad\ntnt 1\npsb\npsbend\ntnt 1");
	const struct fileparts pt = fileparts_in_memory(in.at, in.n);
	struct ipt_copy copy;

	(void)state;
	assert_int_equal(ipt_copy_init(&copy, &pt, 0, 0, false), 0);
	assert_int_equal(ipt_copy_begin(&copy, 3, (const uint8_t[]){ 1, 2, 3 }, 3), 0);
	assert_memory_equal(copy.bytes, ((const uint8_t[]){ 1, 2, 3 }), 3);
	assert_memory_equal(copy.bytes + 3, in.at + 3, in.n - 3);
	ipt_copy_deinit(&copy);
}

#define LARGE (UINT64_C(48) << 20)

/* Of a large span only some windows are in memory. */
static void takes_little_memory(void **state)
{
	uint8_t *bytes = malloc(LARGE);
	const struct fileparts pt = fileparts_in_memory(bytes, LARGE);
	unsigned char *pages = malloc(LARGE / 4096);
	size_t n_max = 0;
	struct ipt_copy copy;

	(void)state;
	assert_non_null(bytes);
	assert_non_null(pages);
	memset(bytes, 0x06, LARGE); /* TNT packets */
	assert_int_equal(ipt_copy_init(&copy, &pt, 0, 0, false), 0);
	assert_int_equal(ipt_copy_begin(&copy, 0, NULL, 0), 0);
	while (copy.end < LARGE) {
		size_t n = 0;

		assert_int_equal(ipt_copy_go_on(&copy, copy.end, copy.end), 0);
		assert_int_equal(mincore(copy.bytes, LARGE, pages), 0);
		for (size_t i = 0; i < LARGE / 4096; i++)
			n += pages[i] & 1;
		n_max = n > n_max ? n : n_max;
	}
	assert_int_equal(copy.bytes[LARGE - 1], 0x06);
	assert_in_range(n_max * 4096, UINT64_C(1) << 22, UINT64_C(12) << 20);
	ipt_copy_deinit(&copy);
	free(pages);
	free(bytes);
}

/* Behind an error the next one may be near: what is copied first is little, and then more. */
static void begins_with_little(void **state)
{
	uint8_t *bytes = malloc(LARGE);
	const struct fileparts pt = fileparts_in_memory(bytes, LARGE);
	struct ipt_copy copy;
	uint64_t begin = 5, n_windows = 0;

	(void)state;
	assert_non_null(bytes);
	memset(bytes, 0x06, LARGE); /* TNT packets */
	assert_int_equal(ipt_copy_init(&copy, &pt, 0, 0, false), 0);
	for (int i = 0; i < 2; i++, begin = 4097) {
		assert_int_equal(ipt_copy_begin(&copy, begin, NULL, 0), 0);
		assert_in_range(copy.end - begin, 100, 1000);
	}
	for (; copy.end < LARGE; n_windows++)
		assert_int_equal(ipt_copy_go_on(&copy, copy.end, copy.end), 0);
	assert_in_range(n_windows, 20, 40);
	ipt_copy_deinit(&copy);
	free(bytes);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_row),          cmocka_unit_test(no_packet),
		cmocka_unit_test(begins_anew),        cmocka_unit_test(takes_little_memory),
		cmocka_unit_test(begins_with_little),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
