/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Histogram: quantiles against those of the sorted values. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/sink/answer/histogram.h"
#include "tests/lib/failing.h"

#define N 5000

static int compare(const void *pa, const void *pb)
{
	const uint64_t a = *(const uint64_t *)pa, b = *(const uint64_t *)pb;

	return a < b ? -1 : a > b;
}

/* A quantile lies within 1/64 of the value that has its rank. */
static void assert_quantile(const struct histogram *h, const uint64_t *sorted, size_t n,
			    unsigned int per_mille)
{
	const size_t rank = (n * per_mille + 999) / 1000;
	const uint64_t expected = sorted[rank > 0 ? rank - 1 : 0];
	const uint64_t got = histogram_quantile(h, per_mille);
	const uint64_t error = got > expected ? got - expected : expected - got;

	assert_true(error <= expected / 64);
	if (expected < 64)
		assert_int_equal(got, expected);
}

static void quantiles(void **state)
{
	static const unsigned int per_mille[] = { 0, 1, 10, 250, 500, 501, 900, 990, 999, 1000 };
	static uint64_t values[N];

	(void)state;
	for (unsigned int bits = 1; bits <= 64; bits++) {
		const size_t n = bits % 2 ? N : 1 + bits;
		struct histogram h = {};
		uint64_t random = bits;

		for (size_t i = 0; i < n; i++) {
			random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
			/* Values of many sizes, up to @bits bits. */
			values[i] = random >> (64 - bits) >> (random >> 20) % bits;
			assert_int_equal(histogram_add(&h, values[i]), 0);
		}
		qsort(values, n, sizeof(*values), compare);
		assert_int_equal(h.n, n);
		assert_true(h.min == values[0] && h.max == values[n - 1]);
		for (size_t i = 0; i < ARRAY_LEN(per_mille); i++)
			assert_quantile(&h, values, n, per_mille[i]);
		assert_true(h.n_counts <= HISTOGRAM_BUCKETS);
		histogram_deinit(&h);
	}
}

/* The ends of the buckets: neighbours are in the same bucket or in the next. */
static void buckets(void **state)
{
	unsigned int last = 0;

	(void)state;
	assert_int_equal(histogram_bucket(0), 0);
	assert_int_equal(histogram_bucket(63), 63);
	assert_int_equal(histogram_bucket(UINT64_MAX), HISTOGRAM_BUCKETS - 1);
	for (uint64_t value = 1; value < 1 << 20; value++) {
		const unsigned int bucket = histogram_bucket(value);

		assert_true(bucket == last || bucket == last + 1);
		last = bucket;
	}
}

static void few_values(void **state)
{
	struct histogram h = {};

	(void)state;
	assert_int_equal(histogram_quantile(&h, 500), 0);
	histogram_deinit(&h);
	assert_int_equal(histogram_add(&h, 1000003), 0);
	assert_int_equal(histogram_quantile(&h, 0), 1000003);
	assert_int_equal(histogram_quantile(&h, 500), 1000003);
	assert_int_equal(histogram_quantile(&h, 1000), 1000003);
	histogram_deinit(&h);
	assert_int_equal(h.n, 0);
}

/* A count that is full stays so. */
static void many_values(void **state)
{
	struct histogram h = {};

	(void)state;
	assert_int_equal(histogram_add(&h, 5), 0);
	h.counts[5] = UINT32_MAX;
	h.n = UINT64_C(1) << 60;
	assert_int_equal(histogram_add(&h, 5), 0);
	assert_int_equal(h.counts[5], UINT32_MAX);
	assert_int_equal(histogram_quantile(&h, 500), 5);
	assert_int_equal(histogram_quantile(&h, 990), 5);
	histogram_deinit(&h);
}

static int add_some(void *userdata)
{
	struct histogram h = {};
	int r = 0;

	(void)userdata;
	for (uint64_t value = 1; value < 1 << 20 && r == 0; value *= 5)
		r = histogram_add(&h, value);
	assert_true(r == 0 || r == -ENOMEM);
	histogram_deinit(&h);
	return r;
}

static void nothing(void *userdata)
{
	(void)userdata;
}

static void calls_that_fail(void **state)
{
	(void)state;
	failing_each(add_some, nothing, NULL);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(quantiles),       cmocka_unit_test(buckets),
		cmocka_unit_test(few_values),      cmocka_unit_test(many_values),
		cmocka_unit_test(calls_that_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
