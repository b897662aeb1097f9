/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Profile: what functions cost that call each other and themselves, on several stacks. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>

#include "decoder/sink/answer/profile.h"
#include "tests/lib/callmade.h"
#include "tests/lib/failing.h"

static void add(struct profile *profile, struct callmade *made)
{
	assert_int_equal(profile_add(profile, &made->batch), 0);
	callmade_clear(made);
}

static void assert_cost(const struct cost *cost, uint64_t self, uint64_t total, uint64_t n_whole)
{
	assert_int_equal(cost->self, self);
	assert_int_equal(cost->total, total);
	assert_int_equal(cost->whole.n, n_whole);
}

/* main 100..200 { f 110..150 { f 120..130; g 130..140 }; g 160..170 } */
static void nested(void **state)
{
	struct profile profile = {};
	struct callmade made;
	const struct profile_function *f;

	(void)state;
	callmade_init(&made, 0, 11);
	callmade_enter(&made, CALLMADE_MAIN, PTD_CALL_BY_START, 100, 1);
	callmade_enter(&made, CALLMADE_F, PTD_CALL_BY_CALL, 110, 11);
	callmade_enter(&made, CALLMADE_F, PTD_CALL_BY_CALL, 120, 12);
	callmade_leave(&made, PTD_CALL_BY_RETURN, 130, 15);
	callmade_enter(&made, CALLMADE_G, PTD_CALL_BY_CALL, 130, 16);
	callmade_leave(&made, PTD_CALL_BY_UNWINDING, 140, 20);
	callmade_leave(&made, PTD_CALL_BY_RETURN, 150, 30);
	callmade_enter(&made, CALLMADE_G, PTD_CALL_BY_TAIL, 160, 31);
	callmade_leave(&made, PTD_CALL_BY_RETURN, 170, 41);
	callmade_leave(&made, PTD_CALL_BY_END, 200, 101);
	add(&profile, &made);

	f = profile.functions.items;
	assert_int_equal(profile.functions.n, CALLMADE_G + 1);
	assert_int_equal(profile.n_calls, 5);
	assert_int_equal(profile.n_partial, 1);
	assert_int_equal(profile.n_insns, 100);
	assert_int_equal(profile.t_self, 100);
	assert_cost(&f[CALLMADE_MAIN].t, 50, 100, 0);
	assert_cost(&f[CALLMADE_MAIN].n_insns, 71, 100, 0);
	assert_int_equal(f[CALLMADE_MAIN].n_partial, 1);
	/* Of a function that calls itself, the total counts once. */
	assert_cost(&f[CALLMADE_F].t, 30, 40, 2);
	assert_cost(&f[CALLMADE_F].n_insns, 15, 19, 2);
	assert_int_equal(f[CALLMADE_F].n_calls, 2);
	assert_int_equal(f[CALLMADE_F].t.whole.min, 10);
	assert_int_equal(f[CALLMADE_F].t.whole.max, 40);
	assert_cost(&f[CALLMADE_G].t, 20, 20, 2);
	assert_int_equal(f[CALLMADE_G].n_partial, 0);
	profile_deinit(&profile);
}

/* A function that is open in two threads is no recursion. */
static void threads(void **state)
{
	struct profile profile = {};
	struct callmade made[2];

	(void)state;
	for (uint32_t i = 0; i < 2; i++) {
		callmade_init(&made[i], i, 11 + i);
		callmade_enter(&made[i], CALLMADE_F, PTD_CALL_BY_CALL, 100 + i, 0);
		add(&profile, &made[i]);
	}
	for (uint32_t i = 0; i < 2; i++) {
		callmade_enter(&made[i], CALLMADE_F, PTD_CALL_BY_CALL, 200, 10);
		callmade_leave(&made[i], PTD_CALL_BY_RETURN, 300, 20);
		add(&profile, &made[i]);
		callmade_leave(&made[!i], PTD_CALL_BY_RETURN, 400, 30);
		callmade_enter(&made[!i], CALLMADE_F, PTD_CALL_BY_CALL, 400, 30);
		add(&profile, &made[!i]);
	}
	for (uint32_t i = 0; i < 2; i++) {
		callmade_leave(&made[i], PTD_CALL_BY_RETURN, 500, 40);
		add(&profile, &made[i]);
	}
	/* 300 and 299 of the first calls, 100 of each of the second ones. */
	assert_cost(&profile.functions.items[CALLMADE_F].t, 799, 799, 6);
	assert_int_equal(profile.n_insns, 80);
	profile_deinit(&profile);
}

/* What a gap ends, and what goes on behind it, is one call, which is not whole. */
static void gaps(void **state)
{
	struct profile profile = {};
	struct callmade made;
	const struct profile_function *f;

	(void)state;
	callmade_init(&made, 0, 11);
	callmade_enter(&made, CALLMADE_F, PTD_CALL_BY_CALL, 100, 0);
	callmade_leave(&made, PTD_CALL_BY_GAP, 110, 10);
	callmade_enter(&made, CALLMADE_G, PTD_CALL_BY_START, 120, 10);
	callmade_leave(&made, PTD_CALL_BY_RETURN, 130, 20);
	callmade_enter(&made, CALLMADE_F, PTD_CALL_BY_RESUMPTION, 130, 20);
	callmade_leave(&made, PTD_CALL_BY_RETURN, 160, 50);
	made.calls[0].ambiguous = false;
	add(&profile, &made);
	f = &profile.functions.items[CALLMADE_F];
	assert_int_equal(f->n_calls, 1);
	assert_int_equal(f->n_partial, 1);
	assert_cost(&f->t, 40, 40, 0);
	assert_int_equal(profile.functions.items[CALLMADE_G].n_partial, 1);
	profile_deinit(&profile);
}

/* The layer found out that it was on another stack, and moves two functions. */
static void moved(void **state)
{
	struct profile profile = {};
	struct callmade made[2], another;
	struct ptd_call move = { .kind = PTD_CALL_SWITCH, .stack = 1, .n_moved = 2, .moved_to = 0 };
	const struct ptd_call_batch batch = { .thread = &made[0].thread,
					      .calls = &move,
					      .n_calls = 1 };

	(void)state;
	for (uint32_t i = 0; i < 2; i++) {
		callmade_init(&made[i], i, 11);
		callmade_enter(&made[i], CALLMADE_MAIN, PTD_CALL_BY_START, 0, 0);
		callmade_enter(&made[i], CALLMADE_F, PTD_CALL_BY_CALL, 10, 10);
		callmade_enter(&made[i], CALLMADE_F, PTD_CALL_BY_CALL, 20, 20);
		add(&profile, &made[i]);
	}
	callmade_leave(&made[0], PTD_CALL_BY_RETURN, 30, 30);
	callmade_leave(&made[0], PTD_CALL_BY_RETURN, 40, 40);
	add(&profile, &made[0]);
	/* Another thread ran meanwhile. */
	callmade_init(&another, 2, 12);
	callmade_enter(&another, CALLMADE_G, PTD_CALL_BY_START, 40, 0);
	add(&profile, &another);
	assert_int_equal(profile_add(&profile, &batch), 0);
	assert_int_equal(profile.stacks.items.items[0].frames.n, 3);
	assert_int_equal(profile.stacks.items.items[1].frames.n, 1);
	/* Only main is open on the current stack. */
	assert_int_equal(profile.functions.items[CALLMADE_MAIN].n_open, 1);
	assert_int_equal(profile.functions.items[CALLMADE_F].n_open, 0);
	profile_deinit(&profile);
}

static void whole(void **state)
{
	(void)state;
	for (uint8_t in = 0; in < _PTD_CALL_HOWS; in++) {
		for (uint8_t out = 0; out < _PTD_CALL_HOWS; out++) {
			const bool expected =
			    in != PTD_CALL_BY_INFERENCE && in != PTD_CALL_BY_RESUMPTION &&
			    in != PTD_CALL_BY_REOPENING && in != PTD_CALL_BY_START &&
			    in != PTD_CALL_BY_REENTRY && out != PTD_CALL_BY_GAP &&
			    out != PTD_CALL_BY_END;
			struct open_frame frame = { .how = in };
			struct ptd_call leave = { .how = out };

			assert_int_equal(profile_is_whole(&frame, &leave), expected);
			frame.ambiguous = true;
			assert_false(profile_is_whole(&frame, &leave));
			frame.ambiguous = false;
			leave.ambiguous = true;
			assert_false(profile_is_whole(&frame, &leave));
		}
	}
}

/* What never was entered is not left. */
static void nonsense(void **state)
{
	struct profile profile = {};
	struct ptd_call call = { .kind = PTD_CALL_LEAVE, .stack = 3, .t_total = 5 };
	const struct ptd_call_batch batch = { .calls = &call, .n_calls = 1 };

	(void)state;
	assert_int_equal(profile_add(&profile, &batch), 0);
	call = (struct ptd_call){ .kind = PTD_CALL_SWITCH, .stack = 7, .n_moved = 5 };
	assert_int_equal(profile_add(&profile, &batch), 0);
	assert_int_equal(profile.n_calls, 0);
	profile_deinit(&profile);
}

static int add_some(void *userdata)
{
	struct profile profile = {};
	struct callmade made;
	int r;

	(void)userdata;
	callmade_init(&made, 20, 11);
	callmade_enter(&made, CALLMADE_MAIN, PTD_CALL_BY_CALL, 0, 0);
	callmade_enter(&made, CALLMADE_JIT, PTD_CALL_BY_CALL, 10, 10);
	callmade_leave(&made, PTD_CALL_BY_RETURN, 1000, 1000);
	callmade_leave(&made, PTD_CALL_BY_RETURN, 100000, 2000);
	r = profile_add(&profile, &made.batch);
	assert_true(r == 0 || r == -ENOMEM);
	profile_deinit(&profile);
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
		cmocka_unit_test(nested),
		cmocka_unit_test(threads),
		cmocka_unit_test(gaps),
		cmocka_unit_test(moved),
		cmocka_unit_test(whole),
		cmocka_unit_test(nonsense),
		cmocka_unit_test(calls_that_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
