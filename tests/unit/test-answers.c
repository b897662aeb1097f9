/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Answers: what the sinks over the call stream write, to the letter, of a stream made by hand. main
 * calls f twice, of which the second call takes 50 times as long, and then the kernel.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

#include "base/base.h"
#include "tests/lib/sunk.h"

#define BASE UINT64_C(0x555555554000)
#define T0   UINT64_C(1000000000)

static const struct ptd_object object = { .name = "/bin/demo" };
static const struct ptd_symbol symbols[] = {
	{ .name = "" },
	{ .name = "main", .address = 0x1000 },
	{ .name = "f", .address = 0x2000 },
};
static const struct ptd_symbol *const by_id[] = { &symbols[0], &symbols[1], &symbols[2] };
static const uint8_t bytes[16];
static const struct ptd_insn call = { .size = 5, .iclass = PTD_INSN_CALL, .symbol = 1 };
static const struct ptd_insn syscall_insn = { .size = 2, .iclass = PTD_INSN_SYSCALL, .symbol = 1 };
static const struct ptd_insn body[] = {
	{ .size = 1, .symbol = 2 },
	{ .offset = 1, .size = 1, .iclass = PTD_INSN_RETURN, .symbol = 2 },
};

#define BLOCK(number, at, n, length, list, to)                                                   \
	{                                                                                        \
		.id = (number), .n_insns = (n), .size = (length), .mode = 64, .object = &object, \
		.address = (at), .bytes = bytes, .insns = (list), .target = (to),                \
	}

static const struct ptd_block blocks[] = {
	BLOCK(0, 0x1000, 1, 5, &call, 0x1000),
	BLOCK(1, 0x1005, 1, 5, &call, 0xffb),
	BLOCK(2, 0x100a, 1, 2, &syscall_insn, 0),
	BLOCK(3, 0x2000, 2, 2, body, 0),
};

static const struct ptd_run runs[] = {
	{ &blocks[0], BASE + 0x1000, T0, 0, 1, false },
	{ &blocks[3], BASE + 0x2000, T0 + 100, 0, 2, false },
	{ &blocks[1], BASE + 0x1005, T0 + 1100, 0, 1, false },
	{ &blocks[3], BASE + 0x2000, T0 + 1200, 0, 2, false },
	{ &blocks[2], BASE + 0x100a, T0 + 51200, 0, 1, false },
};
static const struct ptd_mark mark = { .run = ARRAY_LEN(runs),
				      .kind = PTD_MARK_OFF,
				      .t = T0 + 51200 };
static const struct ptd_slice slice = {
	.pid = 10, .tid = 11, .space = 1, .t0 = T0, .comm = "demo"
};
static const struct ptd_batch batch = {
	.slice = &slice,
	.runs = runs,
	.n_runs = ARRAY_LEN(runs),
	.marks = &mark,
	.n_marks = 1,
	.symbols = by_id,
	.n_symbols = ARRAY_LEN(by_id),
};
static const struct ptd_cpu_stats cpu = { .n_insns = 7, .t_first = T0, .t_last = T0 + 1051200 };
static const struct ptd_stats stats = { .cpus = &cpu, .n_cpus = 1 };

static void assert_answer(const char *name, enum ptd_clock clock, const char *const *options,
			  const char *expected)
{
	struct sunk sunk;

	sunk_begin(&sunk, name, clock, options);
	assert_int_equal(sink_batch(sunk.sink, &batch), 0);
	assert_string_equal(sunk_end(&sunk, &stats), expected);
	sunk_deinit(&sunk);
}

static void functions(void **state)
{
	static const char *const json[] = { "json", NULL }, *const rows[] = { "rows=1", NULL };

	(void)state;
	assert_answer(
	    "functions", PTD_CLOCK_NS, NULL,
	    "Functions: 2\n"
	    "Calls: 3\n"
	    "Partial: 1 call whose beginning or end is not in the trace, or is ambiguous\n"
	    "\n"
	    "By time:\n"
	    "        self       %       total       calls     partial         min      me"
	    "dian         p99         max  function (object)\n"
	    "   51.000 us   99.61   51.000 us           2           0    1.000 us    1.00"
	    "0 us   50.000 us   50.000 us  f (/bin/demo)\n"
	    "    0.200 us    0.39   51.200 us           1           1           -        "
	    "   -           -           -  main (/bin/demo)\n"
	    "\n"
	    "By instructions:\n"
	    "        self       %       total       calls     partial         min      me"
	    "dian         p99         max  function (object)\n"
	    "           4   57.14           4           2           0           2        "
	    "   2           2           2  f (/bin/demo)\n"
	    "           3   42.86           7           1           1           -        "
	    "   -           -           -  main (/bin/demo)\n");
	assert_answer(
	    "functions", PTD_CLOCK_NONE, rows,
	    "Functions: 2\n"
	    "Calls: 3\n"
	    "Partial: 1 call whose beginning or end is not in the trace, or is ambiguous\n"
	    "\n"
	    "By instructions:\n"
	    "        self       %       total       calls     partial         min      me"
	    "dian         p99         max  function (object)\n"
	    "           4   57.14           4           2           0           2        "
	    "   2           2           2  f (/bin/demo)\n"
	    "           3   42.86  (1 other)\n");
	assert_answer("functions", PTD_CLOCK_NS, json,
		      "{\n"
		      " \"format\": \"functions\",\n"
		      " \"clock\": \"ns\",\n"
		      " \"calls\": 3,\n"
		      " \"partial\": 1,\n"
		      " \"functions\": [\n"
		      "  {\"function\": \"f\", \"object\": \"/bin/demo\", \"address\": \"0x2000\", "
		      "\"calls\": 2, \"partial\": 0, \"time\": {\"self\": 51000, \"total\": 51000, "
		      "\"min\": 1000, \"median\": 1000, \"p99\": 50000, \"max\": 50000}, \"instruct"
		      "ions\": {\"self\": 4, \"total\": 4, \"min\": 2, \"median\": 2, \"p99\": 2, "
		      "\"max\": 2}},\n"
		      "  {\"function\": \"main\", \"object\": \"/bin/demo\", \"address\": \"0x1000"
		      "\", \"calls\": 1, \"partial\": 1, \"time\": {\"self\": 200, \"total\": 51200"
		      ", \"min\": null, \"median\": null, \"p99\": null, \"max\": null}, \"instruct"
		      "ions\": {\"self\": 3, \"total\": 7, \"min\": null, \"median\": null, \"p99\""
		      ": null, \"max\": null}}\n"
		      " ]\n"
		      "}\n");
}

static void latency(void **state)
{
	static const char *const f[] = { "function=f", NULL };
	static const char *const json[] = { "function=f", "json", NULL };
	static const char *const none[] = { "function=g", NULL };

	(void)state;
	assert_answer(
	    "latency", PTD_CLOCK_NS, f,
	    "Function: f (/bin/demo)\n"
	    "Executions: 2\n"
	    "\n"
	    "                       min        median           p90           p99        "
	    "   max\n"
	    "time              1.000 us      1.000 us     50.000 us     50.000 us     50."
	    "000 us\n"
	    "instructions             2             2             2             2        "
	    "     2\n"
	    "\n"
	    "Slowest:\n"
	    "    number             began          time  instructions  thread\n"
	    "         2       1.000001200     50.000 us             2  10/11 demo\n"
	    "         1       1.000000100      1.000 us             2  10/11 demo\n"
	    "\n"
	    "The slowest, number 2, had more (+) or less (-) than number 1, of the median"
	    ":\n"
	    "          time          time  instructions  instructions     calls     calls"
	    "  function (object)\n"
	    "          self         total          self         total   slowest    median\n"
	    "    +49.000 us    +49.000 us             0             0         1         1"
	    "  f (/bin/demo)\n");
	assert_answer("latency", PTD_CLOCK_NS, none,
		      "Function: g\n"
		      "Executions: 0\n");
	assert_answer("latency", PTD_CLOCK_NS, json,
		      "{\n"
		      " \"format\": \"latency\",\n"
		      " \"clock\": \"ns\",\n"
		      " \"wanted\": \"f\",\n"
		      " \"executions\": 2,\n"
		      " \"partial\": 0,\n"
		      " \"time\": {\n"
		      "  \"min\": 1000,\n"
		      "  \"median\": 1000,\n"
		      "  \"p90\": 50000,\n"
		      "  \"p99\": 50000,\n"
		      "  \"max\": 50000\n"
		      " },\n"
		      " \"instructions\": {\n"
		      "  \"min\": 2,\n"
		      "  \"median\": 2,\n"
		      "  \"p90\": 2,\n"
		      "  \"p99\": 2,\n"
		      "  \"max\": 2\n"
		      " },\n"
		      " \"slowest\": [\n"
		      "  {\"number\": 2, \"pid\": 10, \"tid\": 11, \"comm\": \"demo\", \"t\": 10000"
		      "01200, \"duration\": 50000, \"instructions\": 2},\n"
		      "  {\"number\": 1, \"pid\": 10, \"tid\": 11, \"comm\": \"demo\", \"t\": 10000"
		      "00100, \"duration\": 1000, \"instructions\": 2}\n"
		      " ],\n"
		      " \"median\": {\n"
		      "  \"number\": 1,\n"
		      "  \"pid\": 10,\n"
		      "  \"tid\": 11,\n"
		      "  \"comm\": \"demo\",\n"
		      "  \"t\": 1000000100,\n"
		      "  \"duration\": 1000,\n"
		      "  \"instructions\": 2\n"
		      " },\n"
		      " \"functions\": [\n"
		      "  {\"function\": \"f\", \"object\": \"/bin/demo\", \"address\": \"0x2000\", "
		      "\"slowest\": {\"calls\": 1, \"time_self\": 50000, \"time_total\": 50000, \"i"
		      "nstructions_self\": 2, \"instructions_total\": 2}, \"median\": {\"calls\": 1"
		      ", \"time_self\": 1000, \"time_total\": 1000, \"instructions_self\": 2, \"ins"
		      "tructions_total\": 2}}\n"
		      " ]\n"
		      "}\n");
}

static void stacks(void **state)
{
	static const char *const json[] = { "json", NULL };

	(void)state;
	assert_answer(
	    "stacks", PTD_CLOCK_NS, NULL,
	    "Threads: 1\n"
	    "\n"
	    "Thread 10/11 demo: in a system call at 1.000051200, 1.000 ms before the end\n"
	    "  #0   0x000055555555500a  main (/bin/demo)\n"
	    "       unknown above\n");
	assert_answer("stacks", PTD_CLOCK_NS, json,
		      "{\n"
		      " \"format\": \"stacks\",\n"
		      " \"clock\": \"ns\",\n"
		      " \"t_end\": 1001051200,\n"
		      " \"threads\": [\n"
		      "  {\"pid\": 10, \"tid\": 11, \"comm\": \"demo\", \"state\": \"in a system ca"
		      "ll\", \"t_last\": 1000051200, \"instructions\": 7, \"frames\": [{\"ip\": \"0"
		      "x55555555500a\", \"function\": \"main\", \"object\": \"/bin/demo\", \"addres"
		      "s\": \"0x1000\", \"depth\": 0, \"entered_by\": \"start\", \"ambiguous\": fal"
		      "se, \"t\": 1000000000}], \"complete\": false}\n"
		      " ]\n"
		      "}\n");
}

/* What the thread was doing is known by its last instruction and the marks behind it. */
static void states_of_a_thread(void **state)
{
	static const struct ptd_mark marks[] = { { .kind = PTD_MARK_CBR, .value = 24 },
						 { .kind = PTD_MARK_GAP },
						 { .kind = PTD_MARK_STOP } };
	static const struct {
		size_t n_runs;
		const struct ptd_mark *mark;
		const char *expected;
	} rows[] = {
		{ 0, &marks[0], "in a system call" },
		{ 0, &marks[1], "lost in a gap" },
		{ 0, &marks[2], "running" },
		{ 1, &marks[0], "running" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct ptd_batch later = batch;
		struct sunk sunk;
		const char *text;

		later.n_runs = rows[i].n_runs;
		later.marks = rows[i].mark;
		sunk_begin(&sunk, "stacks", PTD_CLOCK_NS, NULL);
		assert_int_equal(sink_batch(sunk.sink, &batch), 0);
		assert_int_equal(sink_batch(sunk.sink, &later), 0);
		text = strstr(sunk_end(&sunk, &stats), "demo: ");
		assert_non_null(text);
		text += strlen("demo: ");
		if (strncmp(text, rows[i].expected, strlen(rows[i].expected)) != 0)
			fail_msg("%zu: %s, not %s", i, text, rows[i].expected);
		sunk_deinit(&sunk);
	}
}

static void calls(void **state)
{
	(void)state;
	assert_answer("calls", PTD_CLOCK_TSC, NULL,
		      "# time, duration, instructions, depth, function [file]\n"
		      "# time in TSC ticks\n"
		      "# thread 10/11 demo\n"
		      "       1000000000                             0  main [demo] { // entered by"
		      " start\n"
		      "       1000000100       1000            2     1    f();\n"
		      "       1000001200      50000            2     1    f();\n"
		      "       1000051200      51200            7     0  } // main, left by end\n");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions), cmocka_unit_test(latency),
		cmocka_unit_test(stacks),    cmocka_unit_test(states_of_a_thread),
		cmocka_unit_test(calls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
