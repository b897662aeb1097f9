/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Spans: rows are final at the end; however many spans come, few are kept, and nothing is lost. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>

#include "decoder/sink/html/spans.h"
#include "tests/lib/failing.h"

static void add(struct spans *spans, uint32_t track, int32_t row, uint64_t t, uint64_t duration)
{
	assert_int_equal(spans_add(spans, &(struct span){ .t = t,
							  .duration = duration,
							  .busy = duration,
							  .n_insns = 3,
							  .n = 1,
							  .value = 7,
							  .track = track,
							  .row = row,
							  .kind = SPAN_FUNCTION }),
			 0);
}

static void assert_span(const struct spans *spans, size_t i, int32_t row, uint64_t t)
{
	assert_true(i < spans->items.n);
	assert_int_equal(spans->items.items[i].row, row);
	assert_int_equal(spans->items.items[i].t, t);
}

/* Outer functions move what they contain down, and no other part of the track. */
static void rows(void **state)
{
	struct spans spans = {};

	(void)state;
	assert_int_equal(spans_begin_part(&spans, 0), 0);
	add(&spans, 0, 1, 15, 1);
	add(&spans, 0, 0, 10, 10);
	spans_see_row(&spans, 0, -1);
	spans_see_row(&spans, 0, -2);
	add(&spans, 0, -1, 9, 20);
	add(&spans, 0, -2, 8, 30);
	assert_int_equal(spans_begin_part(&spans, 0), 0);
	add(&spans, 0, 0, 50, 5);
	assert_int_equal(spans_finish(&spans), 0);
	assert_int_equal(spans.items.n, 5);
	assert_span(&spans, 0, 0, 8);
	assert_span(&spans, 1, 0, 50);
	assert_span(&spans, 2, 1, 9);
	assert_span(&spans, 3, 2, 10);
	assert_span(&spans, 4, 3, 15);
	assert_int_equal(spans.resolution, 0);
	spans_deinit(&spans);
}

static void deep(void **state)
{
	struct spans spans = {};

	(void)state;
	assert_int_equal(spans_begin_part(&spans, 0), 0);
	add(&spans, 0, SPANS_ROWS, 1, 1);
	add(&spans, 0, SPANS_ROWS - 1, 2, 1);
	add(&spans, 0, SPANS_ROWS - 2, 3, 1);
	/* Two rows above all of them are found. */
	spans_see_row(&spans, 0, -1);
	assert_int_equal(spans_finish(&spans), 0);
	assert_int_equal(spans.items.n, 1);
	assert_span(&spans, 0, SPANS_ROWS - 1, 3);
	assert_int_equal(spans.n_too_deep, 2);
	spans_deinit(&spans);
}

/* Check that each row's spans follow each other, and that @n calls of @duration each are there. */
static void check_kept(const struct spans *spans, uint64_t n, uint64_t duration)
{
	uint64_t n_found = 0, busy = 0, n_insns = 0, n_whole = 0;

	assert_true(spans->items.n <= SPANS_MAX);
	for (size_t i = 0; i < spans->items.n; i++) {
		const struct span *span = &spans->items.items[i], *before = span - 1;
		const bool is_late = span->t + span->duration >= spans->t_whole;

		if (i > 0 && before->track == span->track && before->row == span->row)
			assert_true(before->t + before->duration <= span->t);
		if (is_late || span->duration >= 2 * spans->resolution)
			assert_int_equal(span->n, 1);
		n_whole += is_late;
		n_found += span->n;
		busy += span->busy;
		n_insns += span->n_insns;
	}
	assert_int_equal(n_found, n);
	assert_int_equal(busy, n * duration);
	assert_int_equal(n_insns, 3 * n);
	assert_true(n_whole > SPANS_WHOLE / 2);
}

/* The tracks come one after the other, as the stays on two CPUs do. */
static void many(void **state)
{
	const uint64_t n = 4 * (uint64_t)SPANS_MAX;
	struct spans spans = {};

	(void)state;
	for (uint32_t track = 0; track < 2; track++) {
		assert_int_equal(spans_begin_part(&spans, track), 0);
		for (uint64_t i = 0; i < n; i++)
			add(&spans, track, (int32_t)(i & 1), (i >> 1) * 100, 60);
	}
	assert_true(spans.items.n <= SPANS_MAX);
	assert_int_equal(spans_finish(&spans), 0);
	assert_true(spans.resolution > 100);
	check_kept(&spans, 2 * n, 60);
	/* Of both tracks the last calls are there. */
	for (size_t i = 0; i + 1 < spans.items.n; i++)
		if (spans.items.items[i].row != spans.items.items[i + 1].row)
			assert_int_equal(spans.items.items[i].t, (n / 2 - 1) * 100);
	spans_deinit(&spans);
}

/* Long spans among short ones stay what they are. */
static void long_ones(void **state)
{
	const uint64_t n = 2 * (uint64_t)SPANS_MAX;
	struct spans spans = {};
	size_t n_long = 0;

	(void)state;
	assert_int_equal(spans_begin_part(&spans, 0), 0);
	for (uint64_t i = 0; i < n; i++)
		add(&spans, 0, 0, i * 10, i % 100000 == 50000 ? 1000000 : 1);
	assert_int_equal(spans_finish(&spans), 0);
	for (size_t i = 0; i < spans.items.n; i++)
		n_long += spans.items.items[i].duration == 1000000 && spans.items.items[i].n == 1;
	assert_int_equal(n_long, (n + 49999) / 100000);
	spans_deinit(&spans);
}

/* Where the trace has no finer time, any number of calls have the same one. */
static void same_time(void **state)
{
	const uint64_t n = 4 * (uint64_t)SPANS_MAX;
	struct spans spans = {};
	uint64_t n_found = 0;

	(void)state;
	assert_int_equal(spans_begin_part(&spans, 0), 0);
	for (uint64_t i = 0; i < n; i++) {
		add(&spans, 0, (int32_t)(i & 1), 1000 + i / (n / 2) * 50, 0);
		assert_true(spans.items.n <= SPANS_MAX);
	}
	assert_int_equal(spans_finish(&spans), 0);
	for (size_t i = 0; i < spans.items.n; i++)
		n_found += spans.items.items[i].n;
	assert_int_equal(n_found, n);
	spans_deinit(&spans);
}

/* There are as many parts as gaps, and they are forgotten. */
static void many_parts(void **state)
{
	struct spans spans = {};

	(void)state;
	for (uint64_t i = 0; i < 3 * (uint64_t)SPANS_MAX; i++) {
		assert_int_equal(spans_begin_part(&spans, 0), 0);
		if (i % 4 == 0)
			add(&spans, 0, 0, i * 10, 1);
	}
	assert_true(spans.parts.n <= SPANS_MAX);
	assert_int_equal(spans_finish(&spans), 0);
	spans_deinit(&spans);
}

static int make_few(void *userdata)
{
	struct spans *spans = userdata;
	int r;

	*spans = (struct spans){};
	r = spans_begin_part(spans, 1);
	if (r == 0)
		r = spans_add(spans, &(struct span){ .n = 1, .track = 1, .kind = SPAN_FUNCTION });
	if (r == 0)
		r = spans_finish(spans);
	if (r < 0)
		spans_deinit(spans);
	return r;
}

static void check_few(void *userdata)
{
	struct spans *spans = userdata;

	assert_int_equal(spans->items.n, 1);
	spans_deinit(spans);
}

static void failures(void **state)
{
	struct spans spans;

	(void)state;
	failing_each(make_few, check_few, &spans);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows),      cmocka_unit_test(deep),
		cmocka_unit_test(many),      cmocka_unit_test(long_ones),
		cmocka_unit_test(same_time), cmocka_unit_test(many_parts),
		cmocka_unit_test(failures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
