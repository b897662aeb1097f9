/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Executions: the slow one among many, and what it had more of. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "decoder/sink/answer/executions.h"
#include "tests/lib/callmade.h"
#include "tests/lib/failing.h"

static int add(struct executions *executions, struct callmade *made)
{
	const int r = executions_add(executions, &made->batch);

	callmade_clear(made);
	return r;
}

/* One request: f calls g @n_inner times, each of 10 ns and 7 instructions; f itself has 5 and 3. */
static void make_request(struct callmade *made, uint64_t t, uint64_t n_insns, size_t n_inner)
{
	callmade_enter(made, CALLMADE_F, PTD_CALL_BY_CALL, t, n_insns);
	for (size_t i = 0; i < n_inner; i++) {
		callmade_enter(made, CALLMADE_G, PTD_CALL_BY_CALL, t, n_insns);
		t += 10;
		n_insns += 7;
		callmade_leave(made, PTD_CALL_BY_RETURN, t, n_insns);
	}
	callmade_leave(made, PTD_CALL_BY_RETURN, t + 5, n_insns + 3);
}

static const struct execution_part *part_of(const struct execution *e, enum callmade_name name)
{
	for (size_t i = 0; i < e->n_parts; i++)
		if (e->parts[i].function == &callmade_functions[name])
			return &e->parts[i];
	return NULL;
}

static void the_slow_one(void **state)
{
	struct executions executions = { .name = "f", .has_time = true };
	const struct execution *median;
	struct callmade made;

	(void)state;
	callmade_init(&made, 0, 11);
	callmade_enter(&made, CALLMADE_MAIN, PTD_CALL_BY_START, 0, 0);
	for (size_t i = 1; i <= 2000; i++) {
		/* Slow is 731; 100 of the others are a bit slower. */
		const size_t n_inner = i == 731 ? 20 : i % 20 == 0 ? 3 : 2;

		make_request(&made, i * 1000, i * 1000, n_inner);
		assert_int_equal(add(&executions, &made), 0);
	}
	assert_int_equal(executions.n, 2000);
	assert_int_equal(executions.n_partial, 0);
	assert_int_equal(executions.t.n, 2000);
	assert_int_equal(executions.n_worst, EXECUTIONS_WORST);
	assert_int_equal(executions.worst[0].number, 731);
	assert_int_equal(executions.worst[0].t, 731000);
	assert_int_equal(executions.worst[0].duration, 205);
	assert_int_equal(executions.worst[0].n_insns, 143);
	assert_int_equal(executions.worst[0].tid, 11);
	assert_string_equal(executions.worst[0].comm, "demo");
	/* Of equally slow ones, the first. */
	for (size_t i = 1; i < EXECUTIONS_WORST; i++) {
		assert_int_equal(executions.worst[i].number, 20 * i);
		assert_null(executions.worst[i].parts);
	}
	assert_int_equal(part_of(&executions.worst[0], CALLMADE_G)->n_calls, 20);
	assert_int_equal(part_of(&executions.worst[0], CALLMADE_G)->t_total, 200);
	assert_int_equal(part_of(&executions.worst[0], CALLMADE_F)->t_self, 5);

	median = executions_median(&executions);
	assert_non_null(median);
	assert_int_equal(median->number, 1);
	assert_int_equal(part_of(median, CALLMADE_G)->n_calls, 2);
	assert_int_equal(part_of(median, CALLMADE_G)->n_insns_self, 14);
	assert_null(part_of(median, CALLMADE_MAIN));
	executions_deinit(&executions);
}

/* The slowest come last, and by instructions where there is no time. */
static void ever_slower(void **state)
{
	struct executions executions = { .name = "f" };
	struct callmade made;

	(void)state;
	callmade_init(&made, 0, 11);
	for (size_t i = 1; i <= 25; i++) {
		make_request(&made, 0, i * 1000, i);
		assert_int_equal(add(&executions, &made), 0);
	}
	for (size_t i = 0; i < EXECUTIONS_WORST; i++)
		assert_int_equal(executions.worst[i].number, 25 - i);
	assert_int_equal(executions.worst[0].n_parts, 2);
	assert_null(executions.worst[1].parts);
	assert_int_equal(executions_median(&executions)->number, 13);
	executions_deinit(&executions);
}

/* A call of the function inside itself is part of the execution; what is not whole is left out. */
static void inner_and_partial(void **state)
{
	struct executions executions = { .name = "f", .has_time = true };
	struct callmade made;

	(void)state;
	callmade_init(&made, 0, 11);
	callmade_enter(&made, CALLMADE_F, PTD_CALL_BY_START, 0, 0);
	callmade_leave(&made, PTD_CALL_BY_RETURN, 1000, 1000);
	callmade_enter(&made, CALLMADE_F, PTD_CALL_BY_CALL, 1000, 1000);
	callmade_enter(&made, CALLMADE_G, PTD_CALL_BY_CALL, 1010, 1010);
	make_request(&made, 1020, 1020, 1);
	callmade_leave(&made, PTD_CALL_BY_RETURN, 1040, 1040);
	callmade_leave(&made, PTD_CALL_BY_RETURN, 1050, 1050);
	assert_int_equal(add(&executions, &made), 0);
	callmade_enter(&made, CALLMADE_F, PTD_CALL_BY_CALL, 2000, 2000);
	callmade_leave(&made, PTD_CALL_BY_GAP, 3000, 3000);
	callmade_enter(&made, CALLMADE_F, PTD_CALL_BY_RESUMPTION, 3100, 3000);
	callmade_leave(&made, PTD_CALL_BY_RETURN, 4000, 4000);
	assert_int_equal(add(&executions, &made), 0);

	assert_int_equal(executions.n, 3);
	assert_int_equal(executions.n_partial, 2);
	assert_int_equal(executions.n_worst, 1);
	assert_int_equal(executions.worst[0].duration, 50);
	assert_int_equal(executions.worst[0].number, 2);
	/* f counts once in its total, and g too. */
	assert_int_equal(part_of(&executions.worst[0], CALLMADE_F)->n_calls, 2);
	assert_int_equal(part_of(&executions.worst[0], CALLMADE_F)->t_total, 50);
	assert_int_equal(part_of(&executions.worst[0], CALLMADE_G)->t_total, 30);
	assert_int_equal(part_of(&executions.worst[0], CALLMADE_G)->t_self, 25);
	executions_deinit(&executions);
}

/* Each thread has an execution of its own. */
static void threads(void **state)
{
	struct executions executions = { .name = "ns::g", .has_time = true };
	struct callmade made[2];

	(void)state;
	for (uint32_t i = 0; i < 2; i++) {
		callmade_init(&made[i], i, 11 + i);
		callmade_enter(&made[i], CALLMADE_G, PTD_CALL_BY_CALL, 100 + i, 0);
		assert_int_equal(add(&executions, &made[i]), 0);
	}
	for (uint32_t i = 0; i < 2; i++) {
		callmade_leave(&made[i], PTD_CALL_BY_RETURN, 200 + 100 * i, 10);
		assert_int_equal(add(&executions, &made[i]), 0);
	}
	assert_int_equal(executions.n_worst, 2);
	assert_int_equal(executions.worst[0].tid, 12);
	assert_int_equal(executions.worst[0].duration, 199);
	assert_int_equal(executions.worst[1].tid, 11);
	executions_deinit(&executions);
}

/* Of stacks on which nothing is open any more, such as those of ended fibers, no memory is kept. */
static void ended_stacks(void **state)
{
	enum { N = 100 };
	struct executions executions = { .name = "f", .has_time = true };
	struct callmade made;

	(void)state;
	for (uint32_t i = 0; i < N; i++) {
		callmade_init(&made, i, 11);
		/* The execution ends before its stack does. */
		if (i % 2 > 0)
			callmade_enter(&made, CALLMADE_MAIN, PTD_CALL_BY_START, 0, 0);
		make_request(&made, i, i, 2);
		if (i % 2 > 0)
			callmade_leave(&made, PTD_CALL_BY_END, 1000, 1000);
		assert_int_equal(add(&executions, &made), 0);
	}
	/* All that is open on the stack N belongs to the first one. */
	callmade_init(&made, N, 11);
	callmade_enter(&made, CALLMADE_F, PTD_CALL_BY_CALL, 0, 0);
	assert_int_equal(add(&executions, &made), 0);
	made.calls[0] = (struct ptd_call){ .kind = PTD_CALL_SWITCH, .stack = N, .n_moved = 1 };
	made.batch.n_calls = 1;
	assert_int_equal(add(&executions, &made), 0);

	assert_int_equal(executions.n, N + 1);
	assert_int_equal(executions.n_partial, 1);
	assert_int_equal(executions.worst[0].n_parts, 2);
	assert_int_equal(executions.stacks.items.n, N + 1);
	assert_int_equal(executions.stacks.items.items[0].frames.n, 1);
	for (size_t i = 0; i <= N; i++) {
		assert_null(executions.running.items[i].execution.parts);
		if (i > 0)
			assert_null(executions.stacks.items.items[i].frames.items);
	}
	executions_deinit(&executions);
}

/* More functions than are kept: the smallest are one part, and the sum is the whole. */
static void many_parts(void **state)
{
	enum { N = 1000 };
	static struct ptd_function functions[N];
	struct executions executions = { .name = "f0", .has_time = true };
	struct ptd_call calls[2] = {};
	struct ptd_call_thread thread = {};
	const struct ptd_call_batch batch = { .thread = &thread, .calls = calls, .n_calls = 2 };
	struct ptd_call_batch one = batch;
	uint64_t sum = 0;

	(void)state;
	for (uint32_t i = 0; i < N; i++)
		functions[i] = (struct ptd_function){ .id = i, .name = i ? "other" : "f0" };
	one.n_calls = 1;
	calls[0].function = &functions[0];
	assert_int_equal(executions_add(&executions, &one), 0);
	for (uint32_t i = 1; i < N; i++) {
		calls[0] = (struct ptd_call){ .function = &functions[i] };
		calls[1] = (struct ptd_call){ .kind = PTD_CALL_LEAVE,
					      .how = PTD_CALL_BY_RETURN,
					      .n_insns_self = i,
					      .n_insns_total = i };
		assert_int_equal(executions_add(&executions, &batch), 0);
	}
	calls[0] = (struct ptd_call){ .kind = PTD_CALL_LEAVE,
				      .how = PTD_CALL_BY_RETURN,
				      .n_insns_total = N * (N - 1) / 2 };
	assert_int_equal(executions_add(&executions, &one), 0);
	assert_int_equal(executions.worst[0].n_parts, EXECUTION_PARTS);
	for (size_t i = 0; i < EXECUTION_PARTS; i++)
		sum += executions.worst[0].parts[i].n_insns_self;
	assert_int_equal(sum, N * (N - 1) / 2);
	assert_ptr_equal(executions.worst[0].parts[0].function, &functions[0]);
	assert_ptr_equal(executions.worst[0].parts[1].function, &functions[N - 1]);
	assert_null(executions.worst[0].parts[EXECUTION_PARTS - 1].function);
	executions_deinit(&executions);
}

static void names(void **state)
{
	(void)state;
	assert_true(executions_name_is("f", "f"));
	assert_true(executions_name_is("ns::f(int)", "ns::f"));
	assert_true(executions_name_is("ns::f(int)", "ns::f(int)"));
	assert_false(executions_name_is("ns::f(int)", "f"));
	assert_false(executions_name_is("foo", "f"));
	assert_false(executions_name_is("(anonymous)", ""));
}

/* A function is left that was not entered, or moved though it does not run. */
static void nonsense(void **state)
{
	struct executions executions = { .name = "f" };
	struct ptd_call calls[] = { { .kind = PTD_CALL_LEAVE, .stack = 2 },
				    { .kind = PTD_CALL_SWITCH, .stack = 9, .n_moved = 3 } };
	const struct ptd_call_batch batch = { .calls = calls, .n_calls = ARRAY_LEN(calls) };

	(void)state;
	assert_int_equal(executions_add(&executions, &batch), 0);
	assert_null(executions_median(&executions));
	executions_deinit(&executions);
}

static int add_some(void *userdata)
{
	struct executions executions = { .name = "f", .has_time = true };
	struct callmade made;
	int r = 0;

	(void)userdata;
	callmade_init(&made, 0, 11);
	for (size_t i = 1; i < 4 && r == 0; i++) {
		make_request(&made, i * 1000, i * 1000, 3 * i);
		r = add(&executions, &made);
	}
	assert_true(r == 0 || r == -ENOMEM);
	executions_deinit(&executions);
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
		cmocka_unit_test(the_slow_one),      cmocka_unit_test(ever_slower),
		cmocka_unit_test(inner_and_partial), cmocka_unit_test(threads),
		cmocka_unit_test(many_parts),        cmocka_unit_test(names),
		cmocka_unit_test(nonsense),          cmocka_unit_test(calls_that_fail),
		cmocka_unit_test(ended_stacks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
