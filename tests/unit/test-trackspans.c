/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Track spans: on which rows functions stand, and which calls are outliers. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>

#include "decoder/sink/html/trackspans.h"
#include "tests/lib/callmade.h"
#include "tests/lib/failing.h"

static int show(struct trackspans *ts, const struct callmade *made)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < made->batch.n_calls; i++)
		r = viewtracks_call(&ts->tracks, &made->thread, &made->calls[i]);
	return r;
}

static void assert_span(const struct trackspans *ts, size_t i, int32_t row, enum callmade_name name,
			uint64_t t, uint64_t duration)
{
	const struct span *span = &ts->spans.items.items[i];

	assert_true(i < ts->spans.items.n);
	assert_int_equal(span->kind, SPAN_FUNCTION);
	assert_int_equal(span->row, row);
	assert_int_equal(span->value, name);
	assert_int_equal(span->t, t);
	assert_int_equal(span->duration, duration);
}

/*
 * A function that another one called in its own place stands where that stood, also below one that
 * is found later.
 */
static void tail_then_outer(void **state)
{
	struct trackspans ts;
	struct callmade made;

	(void)state;
	trackspans_init(&ts, PTD_CLOCK_NS);
	callmade_init(&made, 0, 11);
	callmade_enter(&made, CALLMADE_F, PTD_CALL_BY_START, 1000, 0);
	callmade_leave(&made, PTD_CALL_BY_TAIL, 1010, 5);
	callmade_enter(&made, CALLMADE_G, PTD_CALL_BY_TAIL, 1010, 5);
	callmade_leave(&made, PTD_CALL_BY_RETURN, 1030, 9);
	made.first_depth = -1;
	callmade_enter(&made, CALLMADE_MAIN, PTD_CALL_BY_INFERENCE, 1000, 0);
	callmade_leave(&made, PTD_CALL_BY_TAIL, 1040, 12);
	callmade_enter(&made, CALLMADE_F, PTD_CALL_BY_TAIL, 1040, 12);
	callmade_leave(&made, PTD_CALL_BY_END, 1050, 15);
	assert_int_equal(show(&ts, &made), 0);
	assert_int_equal(viewtracks_finish(&ts.tracks), 0);
	assert_int_equal(spans_finish(&ts.spans), 0);
	assert_int_equal(ts.spans.items.n, 4);
	assert_span(&ts, 0, 0, CALLMADE_MAIN, 999, 41);
	assert_span(&ts, 1, 0, CALLMADE_F, 1040, 10);
	assert_span(&ts, 2, 1, CALLMADE_F, 1000, 10);
	assert_span(&ts, 3, 1, CALLMADE_G, 1010, 20);
	trackspans_deinit(&ts);
}

/* The slowest calls of a function, without those within another one of it or seen in part. */
static void outliers(void **state)
{
	static const uint64_t durations[] = { 3, 9, 1, 7, 7, 2, 8 }, expected[] = { 9, 8, 7, 7, 3 };
	const struct outliers_function *slowest;
	struct trackspans ts;
	struct callmade made;
	uint64_t t = 100;

	(void)state;
	trackspans_init(&ts, PTD_CLOCK_NS);
	callmade_init(&made, 0, 11);
	callmade_enter(&made, CALLMADE_MAIN, PTD_CALL_BY_START, t, 0);
	for (size_t i = 0; i < ARRAY_LEN(durations); i++) {
		callmade_enter(&made, CALLMADE_G, PTD_CALL_BY_CALL, t, t);
		callmade_enter(&made, CALLMADE_G, PTD_CALL_BY_CALL, t, t);
		t += durations[i];
		callmade_leave(&made, PTD_CALL_BY_RETURN, t, t);
		callmade_leave(&made, PTD_CALL_BY_RETURN, t, t);
	}
	callmade_enter(&made, CALLMADE_G, PTD_CALL_BY_CALL, t, t);
	callmade_leave(&made, PTD_CALL_BY_END, t + 100, t);
	callmade_leave(&made, PTD_CALL_BY_END, t + 100, t);
	assert_int_equal(show(&ts, &made), 0);
	assert_int_equal(outliers_of(&ts.outliers, CALLMADE_MAIN)->n, 0);
	assert_int_equal(outliers_of(&ts.outliers, CALLMADE_JIT)->n, 0);
	slowest = outliers_of(&ts.outliers, CALLMADE_G);
	assert_int_equal(slowest->n, OUTLIERS_KEPT);
	for (size_t i = 0; i < OUTLIERS_KEPT; i++)
		assert_int_equal(slowest->slowest[i].duration, expected[i]);
	/* Of equal ones the first comes first. */
	assert_true(slowest->slowest[2].t < slowest->slowest[3].t);
	trackspans_deinit(&ts);
}

static int make_few(void *userdata)
{
	struct trackspans *ts = userdata;
	struct callmade made;
	int r;

	trackspans_init(ts, PTD_CLOCK_NS);
	callmade_init(&made, 0, 11);
	callmade_enter(&made, CALLMADE_MAIN, PTD_CALL_BY_CALL, 10, 0);
	callmade_leave(&made, PTD_CALL_BY_RETURN, 20, 5);
	r = show(ts, &made);
	if (r == 0)
		r = spans_finish(&ts->spans);
	if (r < 0)
		trackspans_deinit(ts);
	return r;
}

static void check_few(void *userdata)
{
	struct trackspans *ts = userdata;

	assert_int_equal(ts->spans.items.n, 1);
	assert_int_equal(outliers_of(&ts->outliers, CALLMADE_MAIN)->n, 1);
	trackspans_deinit(ts);
}

static void failures(void **state)
{
	struct trackspans ts;

	(void)state;
	failing_each(make_few, check_few, &ts);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tail_then_outer),
		cmocka_unit_test(outliers),
		cmocka_unit_test(failures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
