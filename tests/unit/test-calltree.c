/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Call tree: exactly what is written of call streams made by hand. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "decoder/sink/answer/calltree.h"
#include "decoder/sink/output.h"
#include "tests/lib/callmade.h"
#include "tests/lib/failing.h"

#define TITLE                                                      \
	"# time, duration, instructions, depth, function [file]\n" \
	"# time in seconds on the recorder's clock\n"

struct fixture {
	struct ptd_info info;
	struct output output;
	struct calltree tree;
	struct callmade made[2];
};

static void init(struct fixture *f)
{
	*f = (struct fixture){ .info = { .clock = PTD_CLOCK_NS }, .output = output_memory() };
	f->tree =
	    (struct calltree){ .output = &f->output, .info = &f->info, .max_depth = INT64_MAX };
	for (uint32_t i = 0; i < 2; i++)
		callmade_init(&f->made[i], i, 11 + i);
}

static int put(struct fixture *f, struct callmade *made)
{
	const int r = calltree_calls(&f->tree, &made->thread, made->calls, made->batch.n_calls);

	callmade_clear(made);
	return r;
}

static void deinit(struct fixture *f)
{
	calltree_deinit(&f->tree);
	output_deinit(&f->output);
}

static void assert_text(struct fixture *f, const char *expected)
{
	_cleanup_(freep) char *text = NULL;

	calltree_end(&f->tree);
	assert_int_equal(f->output.error, 0);
	text = strndup((const char *)f->output.buffer, f->output.n_used);
	assert_string_equal(text, expected);
	deinit(f);
}

static const uint64_t t0 = 1000000000;

/* A leaf in one line, others with braces; the file where it changes. */
static void make_nested(struct callmade *made)
{
	callmade_enter(made, CALLMADE_MAIN, PTD_CALL_BY_START, t0, 0);
	callmade_enter(made, CALLMADE_F, PTD_CALL_BY_CALL, t0 + 100, 10);
	callmade_leave(made, PTD_CALL_BY_RETURN, t0 + 200, 22);
	callmade_enter(made, CALLMADE_G, PTD_CALL_BY_CALL, t0 + 300, 30);
	callmade_enter(made, CALLMADE_G, PTD_CALL_BY_CALL, t0 + 1300, 40);
	callmade_leave(made, PTD_CALL_BY_RETURN, t0 + 2501300, 1234567);
	callmade_enter(made, CALLMADE_F, PTD_CALL_BY_CALL, t0 + 2501400, 1234570);
	callmade_leave(made, PTD_CALL_BY_RETURN, t0 + 2501401, 1234571);
	callmade_leave(made, PTD_CALL_BY_RETURN, t0 + 2501500, 1234580);
	callmade_leave(made, PTD_CALL_BY_RETURN, t0 + 2501600, 1234590);
}

static void nested(void **state)
{
	struct fixture f;

	(void)state;
	init(&f);
	make_nested(&f.made[0]);
	calltree_begin(&f.tree);
	assert_int_equal(put(&f, &f.made[0]), 0);
	assert_text(
	    &f, TITLE
	    "# thread 10/11 demo\n"
	    "      1.000000000                             0  main [demo] { // entered by start\n"
	    "      1.000000100   0.100 us           12     1    f();\n"
	    "      1.000000300                             1    ns::g(int) [libg.so] {\n"
	    "      1.000001300   2.500 ms      1234527     2      ns::g(int)();\n"
	    "      1.002501400   0.001 us            1     2      f() [demo];\n"
	    "      1.002501500   2.501 ms      1234550     1    } // ns::g(int)\n"
	    "      1.002501600   2.501 ms      1234590     0  } // main\n");
}

static void min_duration(void **state)
{
	struct fixture f;

	(void)state;
	init(&f);
	f.tree.min_duration = 1000;
	make_nested(&f.made[0]);
	calltree_begin(&f.tree);
	assert_int_equal(put(&f, &f.made[0]), 0);
	callmade_enter(&f.made[0], CALLMADE_F, PTD_CALL_BY_START, t0 + 2501600, 0);
	callmade_enter(&f.made[0], CALLMADE_F, PTD_CALL_BY_CALL, t0 + 2501700, 0);
	callmade_leave(&f.made[0], PTD_CALL_BY_RETURN, t0 + 2501800, 10);
	callmade_leave(&f.made[0], PTD_CALL_BY_RETURN, t0 + 2501900, 10);
	assert_int_equal(put(&f, &f.made[0]), 0);
	assert_text(
	    &f, TITLE
	    "# thread 10/11 demo\n"
	    "      1.000000000                             0  main [demo] { // entered by start\n"
	    "      1.000000300                             1    ns::g(int) [libg.so] {\n"
	    "      1.000001300   2.500 ms      1234527     2      ns::g(int)();\n"
	    "      1.002501500   2.501 ms      1234550     1    } // ns::g(int), 1 call left out\n"
	    "      1.002501600   2.501 ms      1234590     0  } // main, 1 call left out\n"
	    "# 2 calls left out\n");
}

static void max_depth(void **state)
{
	struct fixture f;

	(void)state;
	init(&f);
	f.tree.max_depth = 1;
	make_nested(&f.made[0]);
	calltree_begin(&f.tree);
	assert_int_equal(put(&f, &f.made[0]), 0);
	assert_text(
	    &f, TITLE
	    "# thread 10/11 demo\n"
	    "      1.000000000                             0  main [demo] { // entered by start\n"
	    "      1.000000100   0.100 us           12     1    f();\n"
	    "      1.000000300   2.501 ms      1234550     1    ns::g(int)() [libg.so]; // 2 calls "
	    "left out\n"
	    "      1.002501600   2.501 ms      1234590     0  } // main\n");
}

/* What is open is printed before another thread's lines. */
static void threads(void **state)
{
	struct fixture f;

	(void)state;
	init(&f);
	calltree_begin(&f.tree);
	for (uint32_t i = 0; i < 2; i++) {
		callmade_enter(&f.made[i], CALLMADE_MAIN, PTD_CALL_BY_CALL, t0 + i, 0);
		callmade_enter(&f.made[i], CALLMADE_F, PTD_CALL_BY_CALL, t0 + 10 + i, 0);
		assert_int_equal(put(&f, &f.made[i]), 0);
	}
	for (uint32_t i = 0; i < 2; i++) {
		callmade_leave(&f.made[i], PTD_CALL_BY_RETURN, t0 + 100 + i, 5);
		callmade_leave(&f.made[i], PTD_CALL_BY_RETURN, t0 + 200 + i, 9);
		assert_int_equal(put(&f, &f.made[i]), 0);
	}
	assert_text(&f, TITLE "# thread 10/11 demo\n"
			      "      1.000000000                             0  main [demo] {\n"
			      "      1.000000010                             1    f {\n"
			      "# thread 10/12 demo\n"
			      "      1.000000001                             0  main [demo] {\n"
			      "      1.000000011                             1    f {\n"
			      "# thread 10/11 demo\n"
			      "      1.000000100   0.090 us            5     1    } // f\n"
			      "      1.000000200   0.200 us            9     0  } // main\n"
			      "# thread 10/12 demo\n"
			      "      1.000000101   0.090 us            5     1    } // f\n"
			      "      1.000000201   0.200 us            9     0  } // main\n");
}

/* Functions that were open before the first instruction, gaps, and what is not certain. */
static void unusual(void **state)
{
	const struct ptd_slice slice = { .pid = 10, .tid = 11, .comm = "demo" };
	struct fixture f;

	(void)state;
	init(&f);
	calltree_begin(&f.tree);
	callmade_enter(&f.made[0], CALLMADE_F, PTD_CALL_BY_START, t0, 0);
	callmade_leave(&f.made[0], PTD_CALL_BY_RETURN, t0 + 100, 10);
	f.made[0].first_depth = -1;
	callmade_enter(&f.made[0], CALLMADE_MAIN, PTD_CALL_BY_INFERENCE, t0, 0);
	callmade_enter(&f.made[0], CALLMADE_F, PTD_CALL_BY_CALL, t0 + 200, 20);
	callmade_leave(&f.made[0], PTD_CALL_BY_TAIL, t0 + 300, 30);
	callmade_enter(&f.made[0], CALLMADE_JIT, PTD_CALL_BY_TAIL, t0 + 300, 30);
	callmade_leave(&f.made[0], PTD_CALL_BY_UNWINDING, t0 + 400, 40);
	f.made[0].calls[f.made[0].batch.n_calls - 1].ambiguous = true;
	callmade_leave(&f.made[0], PTD_CALL_BY_GAP, t0 + 500, 50);
	assert_int_equal(put(&f, &f.made[0]), 0);
	calltree_mark(
	    &f.tree, &slice,
	    &(struct ptd_mark){
		.kind = PTD_MARK_GAP, .reason = PTD_GAP_OVERFLOW, .t = t0 + 600, .n_bytes = 7 });
	calltree_mark(&f.tree, &slice, &(struct ptd_mark){ .kind = PTD_MARK_CBR, .t = t0 + 600 });
	calltree_mark(&f.tree, &slice,
		      &(struct ptd_mark){ .kind = PTD_MARK_OUT_OF_SCOPE, .t = t0 + 700 });
	assert_text(
	    &f, TITLE
	    "# thread 10/11 demo\n"
	    "      1.000000000   0.100 us           10     0  f() [demo]; // entered by start\n"
	    "      1.000000000                            -1  main [demo] { // entered by "
	    "inference\n"
	    "      1.000000200   0.100 us           10     0    f(); // left by tail call\n"
	    "      1.000000300   0.100 us           10     0    [anon]+0x10() [anon]; // entered "
	    "by "
	    "tail call, left by unwinding, ambiguous\n"
	    "      1.000000500   0.500 us           50    -1  } // main, left by gap\n"
	    "      1.000000600                                // gap: overflow, 7 bytes lost\n"
	    "      1.000000700                                // out of scope\n");
}

/* Very deep stacks, and other clocks. */
static void deep(void **state)
{
	struct ptd_call call = { .function = &callmade_functions[CALLMADE_F] };
	struct fixture f;
	size_t longest = 0;

	(void)state;
	for (enum ptd_clock clock = PTD_CLOCK_NONE; clock <= PTD_CLOCK_TSC; clock++) {
		init(&f);
		f.info.clock = clock;
		calltree_begin(&f.tree);
		for (call.depth = 0; call.depth < 100000; call.depth++)
			assert_int_equal(calltree_calls(&f.tree, &f.made[0].thread, &call, 1), 0);
		call.kind = PTD_CALL_LEAVE;
		call.how = PTD_CALL_BY_RETURN;
		for (; call.depth > 0; call.depth--)
			assert_int_equal(calltree_calls(&f.tree, &f.made[0].thread, &call, 1), 0);
		call = (struct ptd_call){ .function = call.function };
		for (size_t i = 0, start = 0; i < f.output.n_used; i++) {
			if (f.output.buffer[i] != '\n')
				continue;
			longest = i - start > longest ? i - start : longest;
			start = i + 1;
		}
		deinit(&f);
	}
	assert_in_range(longest, 100, 200);
}

static void json(void **state)
{
	const struct ptd_slice slice = { .pid = 10, .tid = PTD_ID_UNKNOWN };
	struct fixture f;

	(void)state;
	init(&f);
	f.tree.is_json = true;
	f.tree.min_duration = 150;
	calltree_begin(&f.tree);
	callmade_enter(&f.made[0], CALLMADE_MAIN, PTD_CALL_BY_START, t0, 0);
	callmade_enter(&f.made[0], CALLMADE_F, PTD_CALL_BY_CALL, t0 + 100, 10);
	callmade_leave(&f.made[0], PTD_CALL_BY_RETURN, t0 + 200, 22);
	callmade_leave(&f.made[0], PTD_CALL_BY_END, t0 + 1000, 30);
	assert_int_equal(put(&f, &f.made[0]), 0);
	calltree_mark(&f.tree, &slice,
		      &(struct ptd_mark){ .kind = PTD_MARK_GAP, .t = t0 + 1000, .n_bytes = 7 });
	assert_text(&f, "{\n"
			" \"format\": \"calls\",\n"
			" \"clock\": \"ns\",\n"
			" \"realtime_offset_ns\": 0,\n"
			" \"calls\": [\n"
			"  {\"pid\": 10, \"tid\": 11, \"stack\": 0, \"depth\": 0, \"function\": "
			"\"main\", \"object\": \"/bin/demo\", \"address\": \"0x1000\", "
			"\"entered_by\": \"start\", \"left_by\": \"end\", \"ambiguous\": false, "
			"\"t\": 1000000000, \"duration\": 1000, \"duration_self\": 900, "
			"\"instructions\": 30, \"instructions_self\": 18, \"left_out\": 1},\n"
			"  {\"pid\": 10, \"tid\": null, \"gap\": \"overflow\", \"t\": 1000001000, "
			"\"bytes\": 7}\n"
			" ],\n"
			" \"left_out\": 0\n"
			"}\n");
}

static int put_some(void *userdata)
{
	struct fixture *f = userdata;
	int r;

	init(f);
	make_nested(&f->made[0]);
	calltree_begin(&f->tree);
	r = put(f, &f->made[0]);
	calltree_end(&f->tree);
	if (r == 0)
		r = f->output.error;
	assert_true(r == 0 || r == -ENOMEM);
	deinit(f);
	return r;
}

static void nothing(void *userdata)
{
	(void)userdata;
}

static void calls_that_fail(void **state)
{
	struct fixture f;

	(void)state;
	failing_each(put_some, nothing, &f);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(nested),    cmocka_unit_test(min_duration),
		cmocka_unit_test(max_depth), cmocka_unit_test(threads),
		cmocka_unit_test(unusual),   cmocka_unit_test(deep),
		cmocka_unit_test(json),      cmocka_unit_test(calls_that_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
