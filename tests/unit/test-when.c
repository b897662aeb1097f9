/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Between which times stretches ran, in spans that end badly. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

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
		const struct when_bounds bounds = when_find(when, offsets[i]);

		assert_int_equal(bounds.from, 0);
		assert_true(bounds.to == UINT64_MAX);
	}
	(void)when_free(when);
	free(pt);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_time_behind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
