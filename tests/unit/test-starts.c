/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Starts: the nearest one below an address is found, in whichever order they come, and many of them
 * take little time. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include "base/base.h"
#include "decoder/calls/functions.h"
#include "tests/lib/failing.h"

#define OBJECTS   3
#define ADDRESSES 4000

static void nothing(void **state)
{
	struct starts starts = {};

	(void)state;
	assert_null(starts_nearest(&starts, 0, 0));
	assert_null(starts_nearest(&starts, 7, UINT64_MAX));
	starts_deinit(&starts);
}

/* Compare each answer with a search of all. */
static void random_order(void **state)
{
	static bool has[OBJECTS][ADDRESSES];
	struct starts starts = {};
	uint32_t random = 1, n = 0;

	(void)state;
	for (size_t i = 0; i < 3 * ADDRESSES; i++) {
		uint32_t object, address;
		const struct start *found;

		random = random * 1103515245 + 12345;
		object = (random >> 24) % OBJECTS;
		address = (random >> 8) % ADDRESSES;
		if (!has[object][address] && i % 3 == 0) {
			has[object][address] = true;
			assert_int_equal(
			    starts_add(&starts, &(struct start){ object, n++, address }), 0);
		}
		found = starts_nearest(&starts, object, address);
		while (!has[object][address] && address > 0)
			address--;
		if (!has[object][address]) {
			assert_null(found);
			continue;
		}
		assert_non_null(found);
		assert_int_equal(found->object, object);
		assert_int_equal(found->address, address);
	}
	assert_true(n > 2 * STARTS_PART);
	starts_deinit(&starts);
}

/* Each comes before all others, or behind them, or between two of them. */
static void many(void **state)
{
	enum { N = 300000 };
	const clock_t start = clock();

	(void)state;
	for (int order = 0; order < 3; order++) {
		struct starts starts = {};

		for (uint32_t i = 0; i < N; i++) {
			const uint32_t address = order == 0   ? i
						 : order == 1 ? N - i
							      : (uint32_t)(i * 7919ull % N);

			assert_int_equal(starts_add(&starts, &(struct start){ 0, i, address }), 0);
			assert_int_equal(starts_nearest(&starts, 0, address)->function, i);
		}
		starts_deinit(&starts);
	}
	assert_true((clock() - start) / CLOCKS_PER_SEC < 5);
}

static int add_some(void *userdata)
{
	struct starts starts = {};
	int r = 0;

	(void)userdata;
	for (uint32_t i = 0; i < 20 * STARTS_PART && r == 0; i++)
		r = starts_add(&starts, &(struct start){ 0, i, i });
	starts_deinit(&starts);
	return r;
}

static void without_effect(void *userdata)
{
	(void)userdata;
}

static void no_memory(void **state)
{
	(void)state;
	failing_each(add_some, without_effect, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing),
		cmocka_unit_test(random_order),
		cmocka_unit_test(many),
		cmocka_unit_test(no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
