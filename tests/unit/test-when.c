/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Between which times stretches ran. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "decoder/pt/when.h"
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

/* That nothing later is told is found out once, not for each stretch. */
static void no_time_behind(void **state)
{
	static const char *const head[] = { "psb", "tsc 5", "psbend" };
	static const char *const stretch[] = { "tip.pge 401000", "tip.pgd0" };
	uint8_t *pt = calloc(1, BEHIND + 64 * (STRETCHES + 2));
	struct pt_config config;
	struct when *when;
	size_t offsets[STRETCHES], size;

	(void)state;
	assert_non_null(pt);
	size = put(pt, head, 3);
	for (size_t i = 0; i < STRETCHES; i++) {
		offsets[i] = size;
		size += put(pt + size, stretch, 2);
	}
	memcpy(pt + size, "\x02\xff", 2);
	pt_config_init(&config);
	config.begin = pt;
	config.end = pt + size + BEHIND;
	assert_int_equal(when_new(&config, &when), 0);
	for (size_t i = 0; i < STRETCHES; i++) {
		const struct when_bounds bounds = when_find(when, offsets[i], true);

		assert_int_equal(bounds.from, 0);
		assert_true(bounds.to == UINT64_MAX);
	}
	(void)when_free(when);
	free(pt);
}

/* The kernel's code is between that of threads: no time told in one stretch is another's. */
static void kernel_between(void **state)
{
	static const char *const lines[] = {
		"psb",
		"tsc 5",
		"psbend",
		"tsc 7",
		"tip.pge 401000",
		"tip ffffffff81000000",
		"tip 401000", /* 6: nothing is told in it */
		"tip ffffffff81000005",
		"tip 401000", /* 8 */
		"tsc 1e",
		"tip ffffffff81000005",
		"tip ffffffff81000000",
		"tip.pgd0", /* 12 */
		"tsc 28",
		"tip.pge 401000",
	};
	static const struct {
		size_t line;
		/* The first one from there on; otherwise by the packet that ends there. */
		bool by_tip;
		uint64_t from, to;
	} rows[] = {
		{ 4, false, 0, 0 },      { 6, true, 0, 0x1e }, { 6, false, 0, 0x1e },
		{ 8, true, 0x1e, 0x1e }, { 11, true, 0, 0 },   { 12, true, 0, 0 },
		{ 13, true, 0, 0 },      { 14, false, 0, 0 },
	};
	uint8_t pt[256];
	size_t ends[ARRAY_LEN(lines)], size = 0;
	struct pt_config config;
	struct when *when;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
		size += put(pt + size, &lines[i], 1);
		ends[i] = size;
	}
	pt_config_init(&config);
	config.begin = pt;
	config.end = pt + size;
	assert_int_equal(when_new(&config, &when), 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const size_t line = rows[i].line;
		const struct when_bounds bounds = rows[i].by_tip
						      ? when_find_tip(when, ends[line - 1])
						      : when_find(when, ends[line], true);

		assert_int_equal(bounds.from, rows[i].from);
		assert_int_equal(bounds.to, rows[i].to);
	}
	(void)when_free(when);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_time_behind),
		cmocka_unit_test(kernel_between),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
