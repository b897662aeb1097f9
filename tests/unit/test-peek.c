/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Peek: between which times stretches ran. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "decoder/pt/peek.h"
#include "decoder/pt/walk.h"
#include "tests/lib/packets.h"

#define STRETCHES 20000
#define BEHIND    (32u << 20) /* bytes that cannot be told from each other */

static size_t put(uint8_t *to, const char *const *lines, size_t n)
{
	size_t size = 0;

	for (size_t i = 0; i < n; i++) {
		uint8_t bytes[64];
		const int r = packets_write(lines[i], bytes);

		assert_true(r > 0);
		memcpy(to + size, bytes, (size_t)r);
		size += (size_t)r;
	}
	return size;
}

static void init(struct walk *walk, const uint8_t *pt, size_t size)
{
	walk_init(walk, &(struct walk_config){ .pt = fileparts_in_memory(pt, size),
					       .mtc_freq = 3,
					       .cpuid_15_eax = 1,
					       .cpuid_15_ebx = 4 });
}

/* Go on to @offset. */
static void go_to(struct walk *walk, uint64_t offset)
{
	struct walk_event event;
	uint64_t unused;
	bool has_ip;

	if (walk->offset == 0)
		assert_true(walk_sync(walk, 0, &unused, &has_ip));
	while (walk->offset < offset) {
		switch (walk_ahead(walk)) {
		case WALK_TIP:
			assert_true(walk_take_tip(walk, &unused));
			break;
		case WALK_EVENT:
			assert_true(walk_take_event(walk, &event));
			break;
		default:
			fail();
		}
	}
	assert_int_equal(walk->offset, offset);
}

/* That nothing later is told is found out once, not for each stretch. */
static void no_time_behind(void **state)
{
	static const char *const head[] = { "psb", "tsc 5", "psbend" };
	static const char *const stretch[] = { "tip.pge 401000", "tip.pgd0" };
	uint8_t *pt = calloc(1, BEHIND + 64 * (STRETCHES + 2));
	struct when when = {};
	struct walk walk;
	size_t ends[STRETCHES], size;

	(void)state;
	assert_non_null(pt);
	size = put(pt, head, 3);
	for (size_t i = 0; i < STRETCHES; i++) {
		size += put(pt + size, stretch, 1);
		ends[i] = size;
		size += put(pt + size, stretch + 1, 1);
	}
	memcpy(pt + size, "\x02\xff", 2);
	init(&walk, pt, size + BEHIND);
	for (size_t i = 0; i < STRETCHES; i++) {
		struct when_bounds bounds;

		go_to(&walk, ends[i]);
		bounds = when_find(&when, &walk, walk.last_ip);
		assert_int_equal(bounds.from, 0);
		assert_true(bounds.to == UINT64_MAX);
	}
	walk_deinit(&walk);
	free(pt);
}

/* Between what times is what ran before the end of a line. */
struct time_row {
	size_t line;
	uint64_t from, to;
};

/* @timed: what the packets tell before a line is of the stretch that runs there; else only before
 * that of the first row, as an engine says of stretches to which the kernel returned */
static void expect_times(const char *const *lines, size_t n_lines, const struct time_row *rows,
			 size_t n_rows, bool timed)
{
	uint8_t pt[256];
	size_t ends[32], size = 0;
	struct when when = {};
	struct walk walk;

	assert_true(n_lines <= ARRAY_LEN(ends));
	for (size_t i = 0; i < n_lines; i++) {
		size += put(pt + size, &lines[i], 1);
		ends[i] = size;
	}
	init(&walk, pt, size);
	for (size_t i = 0; i < n_rows; i++) {
		struct when_bounds bounds;

		go_to(&walk, ends[rows[i].line]);
		walk.is_timed = walk.is_timed && (timed || i == 0);
		bounds = when_find(&when, &walk, walk.last_ip);
		assert_int_equal(bounds.from, rows[i].from);
		assert_int_equal(bounds.to, rows[i].to);
	}
}

/* What is told ahead, and what it proves; a row for each stretch. */
static void ahead(void **state)
{
	static const char *const lines[] = {
		"psb",
		"tsc 5",
		"psbend",
		"tip.pge 401000", /* 3: the TSC is of the PSB+ */
		"tip.pgd0",
		"tip.pge 401000", /* 5 */
		"tsc 8",
		"tip.pge 402000", /* 7 */
		"tip.pgd0",
		"tsc 9",
		"mode.exec 64",
		"tip.pge 401000", /* 11: its own */
		"tip.pgd0",
		"tma 8 0",
		"cyc 1",
		"tip.pge 401000", /* 15: cycles, which MTC packets keep right */
		"tip.pgd0",
		"mtc 2",
		"tip.pge 401000", /* 18: the time of an MTC may be old */
		"mtc 3",
		"tip.pgd0",
		"ovf",
		"fup 401000",  /* 22 */
		"bytes 02 ff", /* nothing that cannot be read is passed over within a stretch */
		"psb",
		"tsc 60",
		"psbend",
	};
	static const struct time_row rows[] = {
		{ 3, 0, 8 },  { 5, 8, 8 },        { 7, 0, 0 },     { 11, 0, 0 },
		{ 15, 0, 0 }, { 18, 0x49, 0x49 }, { 22, 0, 0x60 },
	};

	(void)state;
	expect_times(lines, ARRAY_LEN(lines), rows, ARRAY_LEN(rows), true);
}

/* The kernel's code is between that of threads: no time told in one stretch is another's. */
static void kernel_between(void **state)
{
	static const char *const lines[] = {
		"psb",
		"tsc 5",
		"psbend",
		"tsc 7",
		"tip.pge 401000", /* 4: its own */
		"tip ffffffff81000000",
		"tip 401000", /* 6: nothing is told in it */
		"tip ffffffff81000005",
		"tip 401000", /* 8 */
		"tsc 1e",
		"tip ffffffff81000005", /* 10: the kernel's */
	};
	static const struct time_row rows[] = {
		{ 4, 0, 0 }, { 6, 0, 0x1e }, { 8, 0x1e, 0x1e }, { 10, 0, 0 }
	};

	(void)state;
	expect_times(lines, ARRAY_LEN(lines), rows, ARRAY_LEN(rows), false);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_time_behind),
		cmocka_unit_test(ahead),
		cmocka_unit_test(kernel_between),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
