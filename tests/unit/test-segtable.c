/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Segment tables: what was put is found, by other threads, too, while the table grows. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <pthread.h>

#include "base/base.h"
#include "decoder/image/segtable.h"
#include "decoder/image/view.h"

#define N 20000

static struct seg segs[N];

static void replaced(void **state)
{
	struct segtable table = {};

	(void)state;
	assert_null(segtable_find(&table, 0));
	assert_int_equal(segtable_put(&table, 0, &segs[0]), 0);
	assert_int_equal(segtable_put(&table, UINT64_MAX, &segs[1]), 0);
	assert_ptr_equal(segtable_find(&table, 0), &segs[0]);
	assert_ptr_equal(segtable_find(&table, UINT64_MAX), &segs[1]);
	assert_null(segtable_find(&table, 1));
	assert_int_equal(segtable_put(&table, 0, &segs[2]), 0);
	assert_ptr_equal(segtable_find(&table, 0), &segs[2]);
	assert_int_equal(table.n_used, 2);
	segtable_deinit(&table);
	assert_null(segtable_find(&table, 0));
}

/* Look until the last segment is there: each is found with its own address, or not yet. */
static void *look(void *userdata)
{
	const struct segtable *table = userdata;
	size_t n_wrong = 0;

	while (!segtable_find(table, N - 1)) {
		for (uint64_t ip = 0; ip < N; ip += 7) {
			const struct seg *seg = segtable_find(table, ip);

			n_wrong += seg && (seg != &segs[ip] || seg->ip != ip);
		}
	}
	for (uint64_t ip = 0; ip < N; ip++)
		n_wrong += segtable_find(table, ip) != &segs[ip];
	return (void *)n_wrong;
}

static void two_threads(void **state)
{
	struct segtable table = {};
	pthread_t thread;
	void *n_wrong;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, look, &table), 0);
	for (uint64_t ip = 0; ip < N; ip++) {
		segs[ip].ip = ip;
		assert_int_equal(segtable_put(&table, ip, &segs[ip]), 0);
	}
	assert_int_equal(pthread_join(thread, &n_wrong), 0);
	assert_null(n_wrong);
	segtable_deinit(&table);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(replaced),
		cmocka_unit_test(two_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
