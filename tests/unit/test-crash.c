/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What is said of threads that a signal killed, by what sideband and stream have of them. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/base.h"
#include "decoder/sink/sinks.h"

static const struct ptd_object demo = { .id = 0, .name = "/bin/demo" };
static const struct ptd_symbol none = { .name = "" }, main_ = { .name = "main", .address = 0x1000 },
			       load = { .name = "load", .address = 0x1010 };
static const struct ptd_symbol *const symbols[] = { &none, &main_, &load };

/* main: nop; call load. load: nop; mov (%rax),%rax; ret. */
static const uint8_t call[] = { 0x90, 0xe8, 0x0a, 0x00, 0x00, 0x00 },
		     mov[] = { 0x90, 0x48, 0x8b, 0x00, 0xc3 };
static const struct ptd_insn call_insns[] = {
	{ .offset = 0, .size = 1, .symbol = 1 },
	{ .offset = 1, .size = 5, .symbol = 1, .iclass = PTD_INSN_CALL }
};
static const struct ptd_insn mov_insns[] = {
	{ .offset = 0, .size = 1, .symbol = 2 },
	{ .offset = 1, .size = 3, .symbol = 2 },
	{ .offset = 4, .size = 1, .symbol = 2, .iclass = PTD_INSN_RETURN }
};
static const struct ptd_block in_main = { .id = 0,
					  .n_insns = 2,
					  .size = 6,
					  .mode = 64,
					  .object = &demo,
					  .address = 0x1000,
					  .bytes = call,
					  .insns = call_insns,
					  .target = 0x10 },
			      in_load = { .id = 1,
					  .n_insns = 3,
					  .size = 5,
					  .mode = 64,
					  .object = &demo,
					  .address = 0x1010,
					  .bytes = mov,
					  .insns = mov_insns };

#define BASE UINT64_C(0x7000000)
#define MAIN                                                       \
	{                                                          \
		.block = &in_main, .base = BASE, .t = 1000, .n = 2 \
	}
#define LOAD(of)                                                             \
	{                                                                    \
		.block = &in_load, .base = BASE + 0x10, .t = 2000, .n = (of) \
	}

struct stream {
	struct ptd_sideband records[70];
	size_t n_records;
	struct ptd_run runs[4];
	size_t n_runs;
	struct ptd_mark mark; /* behind them */
	bool has_mark;
	const char *option;
};

#define KILLED(of_pid, of_tid, by)                                                      \
	{                                                                               \
		.kind = PTD_SIDEBAND_EXIT, .t = 5000, .pid = (of_pid), .tid = (of_tid), \
		.signal = (by)                                                          \
	}

/* Return: what is written; it is to be freed. */
static char *show(const struct stream *stream)
{
	const struct ptd_slice slice = { .pid = 10, .tid = 11, .t0 = 1000, .comm = "me" };
	const struct ptd_batch batch = { .slice = &slice,
					 .runs = stream->runs,
					 .n_runs = stream->n_runs,
					 .marks = &stream->mark,
					 .n_marks = stream->has_mark,
					 .symbols = symbols,
					 .n_symbols = ARRAY_LEN(symbols) };
	const struct ptd_info info = { .clock = PTD_CLOCK_NS };
	const char *const options[] = { stream->option, NULL };
	const struct ptd_stats stats = {};
	struct sink_config config = { .info = &info, .options = options };
	struct sink *sink;
	ssize_t size;
	char *text;
	int fd;

	config.fd = memfd_create("crash", MFD_CLOEXEC);
	fd = fcntl(config.fd, F_DUPFD_CLOEXEC, 0);
	assert_int_equal(sink_new(&sink_crash, &config, &sink, NULL), 0);
	for (size_t i = 0; i < stream->n_records; i++)
		assert_int_equal(sink_take_sideband(sink, &stream->records[i]), 0);
	assert_int_equal(sink_batch(sink, &batch), 0);
	assert_int_equal(sink_finish(sink, &stats), 0);
	sink_free(sink);
	text = calloc(1, 1 << 16);
	assert_non_null(text);
	size = pread(fd, text, (1 << 16) - 1, 0);
	assert_true(size > 0);
	close(fd);
	return text;
}

static void assert_has(const char *text, const char *expected)
{
	if (!strstr(text, expected))
		fail_msg("%s\ndoes not have\n%s", text, expected);
}

/* A load of what is not there: the instruction has not executed. */
static void fault(void **state)
{
	const struct stream stream = {
		.records = { KILLED(10, 11, 11) },
		.n_records = 1,
		.runs = { MAIN, LOAD(1) },
		.n_runs = 2,
		.mark = { .run = 2, .kind = PTD_MARK_ASYNC, .t = 2000, .ip = BASE + 0x11 },
		.has_mark = true,
	};
	_cleanup_(freep) char *text = show(&stream);

	(void)state;
	assert_has(text, "Threads killed by a signal: 1\n\n"
			 "Thread 10/11 me: killed by signal 11 (SIGSEGV) at 0.000005000\n"
			 "Not executed any more: 7000011 load+0x1 (/bin/demo): mov (%rax), %rax\n"
			 "Backtrace:\n");
	assert_has(text, "  #0   0x0000000007000011  load (/bin/demo)\n"
			 "  #1   0x0000000007000006  main (/bin/demo)\n");
	assert_has(text, "Last branches taken: 1\n");
	assert_has(text, "7000001 main+0x1 (/bin/demo)  call 0x7000010  -> 7000010 load+0x0 "
			 "(/bin/demo)\n");
}

/* The first instruction of a function faults, as when the stack is full: it is known if it ran
 * before. */
static void at_a_start(void **state)
{
	struct stream stream = {
		.records = { KILLED(10, 11, 11) },
		.n_records = 1,
		.runs = { MAIN },
		.n_runs = 1,
		.mark = { .run = 1, .kind = PTD_MARK_ASYNC, .t = 2000, .ip = BASE + 0x10 },
		.has_mark = true,
	};
	_cleanup_(freep) char *unknown = show(&stream), *known = NULL;

	(void)state;
	assert_has(unknown, "Not executed any more: 7000010 [unknown]: its bytes are not in the "
			    "trace\n");
	stream.runs[0] = (struct ptd_run)LOAD(3);
	stream.runs[1] = (struct ptd_run)MAIN;
	stream.n_runs = stream.mark.run = 2;
	known = show(&stream);
	assert_has(known, "Not executed any more: 7000010 load+0x0 (/bin/demo): nop\n");
}

/* A signal that the program sent to itself. */
static void in_a_call(void **state)
{
	const struct stream stream = {
		.records = { KILLED(10, 11, 6) },
		.n_records = 1,
		.runs = { MAIN, LOAD(3) },
		.n_runs = 2,
		.mark = { .run = 2, .kind = PTD_MARK_OFF, .t = 2000 },
		.has_mark = true,
	};
	_cleanup_(freep) char *text = show(&stream);

	(void)state;
	assert_has(text, "killed by signal 6 (SIGABRT)");
	assert_has(text, "Executed last: 7000014 load+0x4 (/bin/demo): ret\n");
}

static void others(void **state)
{
	struct stream stream = {
		.records = { KILLED(10, 10, 0), KILLED(12, 11, 300) },
		.n_records = 1,
		.runs = { MAIN },
		.n_runs = 1,
	};
	_cleanup_(freep) char *nothing = show(&stream), *unseen = NULL, *many = NULL;

	(void)state;
	assert_has(nothing, "Threads killed by a signal: 0\n");
	stream.n_records = 2;
	unseen = show(&stream);
	assert_has(unseen, "Thread 12/11 ?: killed by signal 300 (SIG?) at 0.000005000\n"
			   "None of its instructions is in the trace.\n");
	for (size_t i = 0; i < ARRAY_LEN(stream.records); i++)
		stream.records[i] = (struct ptd_sideband)KILLED(10, 11, 9);
	stream.n_records = ARRAY_LEN(stream.records);
	many = show(&stream);
	assert_has(many, "Threads killed by a signal: 70\n");
	assert_has(many, "\n6 more\n");
}

/* Signals that tracepoints tell: only those whose default action ends the process count. */
static void delivered(void **state)
{
#define DELIVERED(by, handler)                                                                \
	{                                                                                     \
		.kind = PTD_SIDEBAND_SIGNAL, .t = 4000, .pid = 10, .tid = 11, .signal = (by), \
		.address = (handler)                                                          \
	}
	struct stream stream = {
		.records = { DELIVERED(11, 0x401000), DELIVERED(17, 0), DELIVERED(13, 1),
			     DELIVERED(6, 0), KILLED(10, 11, 0) },
		.n_records = 3,
		.runs = { MAIN, LOAD(3) },
		.n_runs = 2,
		.mark = { .run = 2, .kind = PTD_MARK_OFF, .t = 2000 },
		.has_mark = true,
	};
	_cleanup_(freep) char *handled = show(&stream), *killed = NULL, *ended = NULL;

	(void)state;
	assert_has(handled, "Threads killed by a signal: 0\n");
	stream.n_records = 4;
	killed = show(&stream);
	assert_has(killed, "Threads killed by a signal: 1\n\n"
			   "Thread 10/11 me: killed by signal 6 (SIGABRT) at 0.000004000\n");
	assert_has(killed, "Signal handled last: 11 (SIGSEGV) at 0.000004000, by 401000 "
			   "[unknown]\n");
	assert_has(killed, "  #1   0x0000000007000006  main (/bin/demo)\n");
	stream.n_records = 5;
	ended = show(&stream);
	assert_has(ended, "Thread 10/11 me: killed by signal 6 (SIGABRT) at 0.000005000\n");
}

static void as_json(void **state)
{
	const struct stream stream = {
		.records = { KILLED(10, 11, 11) },
		.n_records = 1,
		.runs = { MAIN, LOAD(1) },
		.n_runs = 2,
		.mark = { .run = 2, .kind = PTD_MARK_ASYNC, .t = 2000, .ip = BASE + 0x11 },
		.has_mark = true,
		.option = "json",
	};
	_cleanup_(freep) char *text = show(&stream);

	(void)state;
	assert_has(text, "\"signal\": 11, ");
	assert_has(text, "\"instruction\": \"mov (%rax), %rax\"");
	assert_has(text, "\"address\": \"0x1011\"");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(fault),  cmocka_unit_test(at_a_start), cmocka_unit_test(in_a_call),
		cmocka_unit_test(others), cmocka_unit_test(delivered),  cmocka_unit_test(as_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
