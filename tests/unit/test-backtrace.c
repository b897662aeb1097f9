/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Backtrace: exactly what is written of functions that are open. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

#include "base/base.h"
#include "decoder/sink/answer/backtrace.h"
#include "decoder/sink/output.h"
#include "tests/lib/callmade.h"

static void assert_text(struct output *output, const char *expected)
{
	_cleanup_(freep) char *text = strndup((const char *)output->buffer, output->n_used);

	assert_string_equal(text, expected);
	output_deinit(output);
}

static const struct ptd_frame some[] = {
	{ .function = &callmade_functions[CALLMADE_G],
	  .how = PTD_CALL_BY_CALL,
	  .depth = 1,
	  .t = 77,
	  .ip = 0x7f0000001234 },
	{ .function = &callmade_functions[CALLMADE_F], .how = PTD_CALL_BY_SIGNAL, .ip = 0x1110 },
	{ .function = &callmade_functions[CALLMADE_JIT],
	  .how = PTD_CALL_BY_CALL,
	  .ambiguous = true },
	{ .function = &callmade_functions[CALLMADE_MAIN], .how = PTD_CALL_BY_GAP, .depth = -1 },
};

/* Return: a backtrace without source lines. */
static struct backtrace of(const struct ptd_frame *frames, size_t n)
{
	return (struct backtrace){ .frames = frames, .n = n };
}

static void put(struct output *output, const struct ptd_frame *frames, size_t n)
{
	const struct backtrace backtrace = of(frames, n);

	assert_int_equal(backtrace_put(output, &backtrace), 0);
}

static void text(void **state)
{
	struct output output = output_memory();

	(void)state;
	put(&output, some, ARRAY_LEN(some));
	assert_text(&output,
		    "  #0   0x00007f0000001234  ns::g(int) (/lib/libg.so)\n"
		    "  #1   0x0000000000001110  f (/bin/demo) // entered by a signal\n"
		    "  #2   ?                   [anon]+0x10 ([anon]) // ambiguous\n"
		    "  #3   ?                   main (/bin/demo) // open before the last gap, "
		    "may have returned\n"
		    "       unknown above\n");
	output = output_memory();
	put(&output, NULL, 0);
	assert_text(&output, "       unknown above\n");
}

/* Where programs and threads begin, there is nothing above. */
static void complete(void **state)
{
	static const struct {
		const char *name;
		bool expected;
	} rows[] = { { "_start", true },        { "clone3", true }, { "__clone", true },
		     { "__GI___clone3", true }, { "main", false },  { "start", false } };
	struct output output = output_memory();
	struct ptd_function function = callmade_functions[CALLMADE_MAIN];
	const struct ptd_frame frame = { .function = &function, .ip = 0x10 };
	const struct backtrace none = {}, one = of(&frame, 1);

	(void)state;
	assert_false(backtrace_is_complete(&none));
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		function.name = rows[i].name;
		assert_int_equal(backtrace_is_complete(&one), rows[i].expected);
	}
	function.name = "_start";
	put(&output, &frame, 1);
	assert_text(&output, "  #0   0x0000000000000010  _start (/bin/demo)\n");
}

/* Of a recursion without end, both ends are shown. */
static void deep(void **state)
{
	struct output output = output_memory();
	struct ptd_frame frames[150];
	_cleanup_(freep) char *lines = NULL;
	size_t n = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(frames); i++)
		frames[i] = some[0];
	put(&output, frames, ARRAY_LEN(frames));
	for (size_t i = 0; i < output.n_used; i++)
		n += output.buffer[i] == '\n';
	assert_int_equal(n, 102);
	lines = strndup((const char *)output.buffer, output.n_used);
	assert_non_null(strstr(lines, "\n  #49  0x00007f0000001234  ns::g(int) (/lib/libg.so)\n"
				      "       50 more\n"
				      "  #100 0x00007f0000001234  ns::g(int) (/lib/libg.so)\n"));
	output_deinit(&output);
}

static void json(void **state)
{
	struct output output = output_memory();
	struct json document = json_begin(&output);
	const struct backtrace two = of(some, 2);

	(void)state;
	json_object(&document, NULL);
	assert_int_equal(backtrace_json(&document, &two), 0);
	json_close(&document);
	assert_text(
	    &output,
	    "{\n"
	    " \"frames\": [\n"
	    "  {\"ip\": \"0x7f0000001234\", \"function\": \"ns::g(int)\", \"object\": "
	    "\"/lib/libg.so\", \"address\": \"0x2000\", \"depth\": 1, \"entered_by\": "
	    "\"call\", \"ambiguous\": false, \"t\": 77},\n"
	    "  {\"ip\": \"0x1110\", \"function\": \"f\", \"object\": \"/bin/demo\", "
	    "\"address\": \"0x1100\", \"depth\": 0, \"entered_by\": \"signal\", \"ambiguous\": "
	    "false, \"t\": 0}\n"
	    " ],\n"
	    " \"complete\": false\n"
	    "}\n");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(text),
		cmocka_unit_test(complete),
		cmocka_unit_test(deep),
		cmocka_unit_test(json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
