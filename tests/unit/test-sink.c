/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The sinks that write one file: a stream made by hand, and exactly what comes out. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/base.h"
#include "decoder/sink/sinks.h"
#include "decoder/sink/worker.h"
#include "tests/lib/failing.h"
#include "tests/lib/kinds.h"
#include "tests/lib/stream.h"
#include "tests/lib/sunk.h"
#include "tests/lib/terminal.h"
#include "util/mapfile.h"
#include "util/vec.h"

struct fixture {
	struct stream stream;
	struct sink *sink;
	struct mapfile file;
	char path[32];
	struct ptd_info info; /* borrowed by the sink */
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	_cleanup_(fd_closep) int fd = -1;

	assert_non_null(f);
	strcpy(f->path, "/tmp/test-sink-XXXXXX");
	fd = mkstemp(f->path);
	assert_true(fd >= 0);
	stream_init(&f->stream);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	if (f->sink)
		assert_null(sink_free(f->sink));
	mapfile_deinit(&f->file);
	assert_int_equal(unlink(f->path), 0);
	free(f);
	return 0;
}

static void begin_info(struct fixture *f, const char *name, const struct ptd_info *info)
{
	const struct sink_ops *ops = sink_find(name);

	assert_non_null(ops);
	if (f->sink)
		f->sink = sink_free(f->sink);
	mapfile_deinit(&f->file);
	f->info = *info;
	assert_int_equal(sink_open(ops, f->path, &f->info, NULL, &f->sink), 0);
}

static void begin(struct fixture *f, const char *name, enum ptd_clock clock, int64_t offset_ns)
{
	begin_info(f, name, &(struct ptd_info){ .clock = clock, .realtime_offset_ns = offset_ns });
}

static void put(struct fixture *f)
{
	assert_int_equal(sink_batch(f->sink, &f->stream.batch), 0);
}

static void end(struct fixture *f)
{
	assert_int_equal(sink_finish(f->sink, &f->stream.stats), 0);
	assert_int_equal(mapfile_read(&f->file, AT_FDCWD, f->path), 0);
}

static void assert_text(const struct fixture *f, const char *expected)
{
	_cleanup_(freep) char *text = strndup((const char *)f->file.bytes, f->file.size);

	assert_non_null(text);
	assert_string_equal(text, expected);
}

static void registry(void **state)
{
	(void)state;
	assert_null(sink_find("nothing"));
	assert_null(sink_find(""));
	for (size_t i = 0; sink_at(i); i++) {
		const struct sink_ops *ops = sink_at(i);

		assert_ptr_equal(sink_find(ops->name), ops);
		assert_non_null(ops->help);
		assert_null(strchr(ops->help, '\n'));
	}
}

static void reasons(void **state)
{
	(void)state;
	for (int i = 0; i < _PTD_GAP_REASONS; i++) {
		assert_string_not_equal(ptd_gap_reason_name(i), "unknown");
		for (int k = 0; k < i; k++)
			assert_string_not_equal(ptd_gap_reason_name(i), ptd_gap_reason_name(k));
	}
	assert_string_equal(ptd_gap_reason_name(_PTD_GAP_REASONS), "unknown");
}

static void open_errors(void **state)
{
	static const char *const names[] = { "text", "addresses", "summary" };
	const struct ptd_info info = { .clock = PTD_CLOCK_NS };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		const struct sink_ops *ops = sink_find(names[i]);
		struct sink *sink = (struct sink *)0x1;

		assert_int_equal(sink_open(ops, "/nonexistent/x", &info, NULL, &sink), -ENOENT);
		assert_ptr_equal(sink, (struct sink *)0x1);
	}
}

/* An empty batch, and one that has only marks, add no address. */
static void addresses(void **state)
{
	struct fixture *f = *state;
	size_t n = 0;

	begin(f, "addresses", PTD_CLOCK_NS, 0);
	put(f);
	f->stream.batch.n_runs = 0;
	f->stream.batch.runs = NULL;
	put(f);
	end(f);
	for (; stream_addresses[n]; n++) {
		uint64_t address;

		assert_true(f->file.size >= 8 * n + 8);
		memcpy(&address, f->file.bytes + 8 * n, sizeof(address));
		assert_true(le64toh(address) == stream_addresses[n]);
	}
	assert_int_equal(f->file.size, 8 * n);
}

/* More than the buffer holds, in runs as long as a run can be. */
static void addresses_of_long_runs(void **state)
{
	struct fixture *f = *state;
	_cleanup_(freep) struct ptd_insn *insns = calloc(UINT16_MAX, sizeof(*insns));
	struct ptd_block block = { .n_insns = UINT16_MAX, .insns = insns };
	struct ptd_run run = { .block = &block, .base = 0x100000, .n = UINT16_MAX };

	for (size_t i = 0; i < UINT16_MAX; i++)
		insns[i] = (struct ptd_insn){ .offset = (uint16_t)i, .size = 1 };
	f->stream.batch.runs = &run;
	f->stream.batch.n_runs = 1;
	begin(f, "addresses", PTD_CLOCK_NS, 0);
	for (size_t i = 0; i < 5; i++)
		put(f);
	end(f);
	assert_int_equal(f->file.size, 5u * UINT16_MAX * 8);
	for (size_t i = 0; i < 5u * UINT16_MAX; i++) {
		uint64_t address;

		memcpy(&address, f->file.bytes + 8 * i, sizeof(address));
		if (address != 0x100000 + i % UINT16_MAX)
			fail();
	}
}

#define TITLE             "# comm pid/tid [cpu] time: address bytes instruction symbol+offset (object)\n"
#define HEAD(start, time) start "           demo      10/11      [003] " time ": "
#define HOT(time)                                                                                 \
	HEAD(" ", time)                                                                           \
	"    555555555000 55                     push %rbp                            "           \
	"main+0x0 (/bin/demo)\n" HEAD(                                                            \
	    " ",                                                                                  \
	    time) "    555555555001 4889e5                 mov %rsp, %rbp                       " \
		  "main+0x1 (/bin/demo)\n" HEAD(" ",                                              \
						time) "    555555555004 e8f70f0000             "  \
						      "call 0x555555556000                  "     \
						      "main+0x4 (/bin/demo)\n"
#define COLD                                                                            \
	"    555555556001 0f84f9efffff           jz 0x555555555000                    " \
	"ns::f(int)+0x11 (/bin/demo)\n"
#define JIT                                                                             \
	"    7f0000000000 0f05                   syscall                              " \
	"[unknown] ([jit])\n"

static void text(void **state)
{
	struct fixture *f = *state;

	begin(f, "text", PTD_CLOCK_NS, 1700000000000000000);
	put(f);
	end(f);
	assert_text(
	    f, TITLE
	    "# time in seconds on the recorder's clock; CLOCK_REALTIME is "
	    "1700000000000000000 ns more\n" HOT("      1.000000005")
		HEAD("#", "      1.000000005") "async: interrupted, ip 555555556000\n" HOT(
		    "      1.000000005")
		    HEAD("#", "      1.000000055") "gap: overflow, ip unknown, offset 0x1234, 7 "
						   "bytes lost\n" HEAD(" ", "      1.000000105")
						       COLD HEAD(" ", "      2.000000005") JIT HEAD(
							   "#",
							   "      2.000000005") "off: left for "
										"untraced code, ip "
										"7f0000000000\n");
}

/* Put the batch as that of slice number @i, of which two in a row are the same. */
static void put_slice(struct fixture *f, size_t i)
{
	static const struct {
		uint32_t pid, tid, cpu;
		uint64_t later_ns;
	} rows[] = {
		{ 10, 11, 3, 0 },        { 10, 12, 3, 0 },
		{ 10, 11, 1234, 0 },     { 123456789, PTD_ID_UNKNOWN, 3, 0 },
		{ 10, 123456789, 3, 5 }, { 10, 11, 3, UINT64_C(123456789000000000) },
		{ 10, 12, 4, 7 },
	};
	const size_t k = i / 2 * 5 % ARRAY_LEN(rows);

	f->stream.slice.pid = rows[k].pid;
	f->stream.slice.tid = rows[k].tid;
	f->stream.slice.cpu = rows[k].cpu;
	for (size_t run = 0; run < f->stream.batch.n_runs; run++)
		f->stream.runs[run].t += rows[k].later_ns;
	put(f);
	for (size_t run = 0; run < f->stream.batch.n_runs; run++)
		f->stream.runs[run].t -= rows[k].later_ns;
}

/* Lines of the same blocks in several slices, whose first columns have different sizes. */
static void text_of_many_slices(void **state)
{
	struct fixture *f = *state;
	VEC(char) expected = {};
	size_t title_size;

	begin(f, "text", PTD_CLOCK_NS, 0);
	end(f);
	title_size = f->file.size;
	for (size_t i = 0; i < 21; i++) {
		const size_t skipped = i > 0 ? title_size : 0;

		begin(f, "text", PTD_CLOCK_NS, 0);
		put_slice(f, i);
		end(f);
		assert_int_equal(vec_reserve(&expected, f->file.size), 0);
		memcpy(expected.items + expected.n, f->file.bytes + skipped,
		       f->file.size - skipped);
		expected.n += f->file.size - skipped;
	}
	begin(f, "text", PTD_CLOCK_NS, 0);
	for (size_t i = 0; i < 21; i++)
		put_slice(f, i);
	end(f);
	assert_int_equal(f->file.size, expected.n);
	assert_memory_equal(f->file.bytes, expected.items, expected.n);
	vec_deinit(&expected);
}

/* What the CPU reports besides, each kind of it. */
static void text_of_all_marks(void **state)
{
	static const struct {
		struct ptd_mark mark;
		const char *expected;
	} rows[] = {
		{ { .kind = PTD_MARK_GAP,
		    .reason = PTD_GAP_LOST,
		    .ip = 0x401000,
		    .offset = 0x10,
		    .n_bytes = 9 },
		  "gap: lost by the recorder, ip 401000, offset 0x10, 9 bytes lost" },
		{ { .kind = PTD_MARK_ASYNC }, "async: interrupted, ip unknown" },
		{ { .kind = PTD_MARK_OFF, .ip = 0x401000 },
		  "off: left for untraced code, ip 401000" },
		{ { .kind = PTD_MARK_STOP, .ip = 0x401000 },
		  "stop: packets were stopped by an address filter" },
		{ { .kind = PTD_MARK_OUT_OF_SCOPE, .ip = 0x401000 },
		  "out of scope: code that was not asked for, ip 401000" },
		{ { .kind = PTD_MARK_TSX, .ip = 0x401000, .value = PTD_TSX_BEGIN },
		  "tsx: begin, ip 401000" },
		{ { .kind = PTD_MARK_TSX, .ip = 0x401000, .value = PTD_TSX_COMMIT },
		  "tsx: commit, ip 401000" },
		{ { .kind = PTD_MARK_TSX, .value = PTD_TSX_ABORT }, "tsx: abort, ip unknown" },
		{ { .kind = PTD_MARK_PTWRITE, .ip = 0x401000, .value = 0x1234, .extra = 8 },
		  "ptwrite: 0x1234 0x8, ip 401000" },
		{ { .kind = PTD_MARK_PTWRITE, .ip = 0x401000, .extra = 4 },
		  "ptwrite: 0x0 0x4, ip 401000" },
		{ { .kind = PTD_MARK_CBR, .value = 0x20 }, "cbr: 0x20" },
		{ { .kind = PTD_MARK_PAGING, .value = 0x5000, .extra = 1 }, "paging: 0x5000 0x1" },
		{ { .kind = PTD_MARK_VMCS, .value = 0x7000 }, "vmcs: 0x7000" },
		{ { .kind = PTD_MARK_MWAIT, .value = 1, .extra = 2, .ip = 0x401000 },
		  "mwait: 0x1 0x2, ip 401000" },
		{ { .kind = PTD_MARK_PWRE, .value = 0x61 }, "pwre: 0x61" },
		{ { .kind = PTD_MARK_PWRX, .value = 0x66, .extra = 1 }, "pwrx: 0x66 0x1" },
		{ { .kind = PTD_MARK_EXSTOP, .ip = 0x401000 }, "exstop: ip 401000" },
		{ { .kind = PTD_MARK_CFE, .value = 1, .extra = 0x20, .ip = 0x401000 },
		  "cfe: 0x1 0x20, ip 401000" },
		{ { .kind = PTD_MARK_EVD, .value = 0, .extra = 0x99 }, "evd: 0x0 0x99" },
		{ { .kind = PTD_MARK_PEBS }, "pebs:" },
		{ { .kind = PTD_MARK_TRIG, .value = 3 }, "trig: 0x3" },
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct ptd_mark mark = rows[i].mark;
		char expected[400];

		mark.t = 1000000005;
		f->stream.batch.n_runs = 0;
		f->stream.batch.marks = &mark;
		f->stream.batch.n_marks = 1;
		begin(f, "text", PTD_CLOCK_NS, 0);
		put(f);
		end(f);
		(void)snprintf(expected, sizeof(expected),
			       TITLE "# time in seconds on the recorder's clock\n" HEAD(
				   "#", "      1.000000005") "%s\n",
			       rows[i].expected);
		assert_text(f, expected);
	}
}

/* The records beside the PT, in perf's words. */
static void sideband(void **state)
{
	static const struct {
		struct ptd_sideband record;
		const char *expected;
	} rows[] = {
		{ { .kind = PTD_SIDEBAND_MMAP,
		    .pid = 5,
		    .tid = 6,
		    .address = 0x401000,
		    .size = 0x1000,
		    .offset = 0x2000,
		    .name = "/bin/a\033" },
		  "PERF_RECORD_MMAP 5/6: [0x401000(0x1000) @ 0x2000]: x /bin/a?" },
		{ { .kind = PTD_SIDEBAND_MMAP,
		    .flags = PTD_SIDEBAND_DATA,
		    .pid = 5,
		    .tid = 6,
		    .name = "[heap]" },
		  "PERF_RECORD_MMAP 5/6: [0(0) @ 0]: r [heap]" },
		{ { .kind = PTD_SIDEBAND_MMAP2,
		    .pid = 5,
		    .tid = 6,
		    .address = 0x401000,
		    .size = 0x1000,
		    .offset = 0x2000,
		    .prot = PROT_READ | PROT_EXEC,
		    .map_flags = MAP_PRIVATE,
		    .major = 8,
		    .minor = 0x1f,
		    .inode = 77,
		    .inode_generation = 3,
		    .name = "/bin/a" },
		  "PERF_RECORD_MMAP2 5/6: [0x401000(0x1000) @ 0x2000 08:1f 77 3]: r-xp /bin/a" },
		{ { .kind = PTD_SIDEBAND_MMAP2,
		    .pid = 5,
		    .tid = 6,
		    .prot = PROT_WRITE,
		    .map_flags = MAP_SHARED,
		    .build_id_size = 3,
		    .build_id = { 0x01, 0xab, 0xff },
		    .name = "x" },
		  "PERF_RECORD_MMAP2 5/6: [0(0) @ 0 <01abff>]: -w-s x" },
		{ { .kind = PTD_SIDEBAND_COMM, .pid = 5, .tid = 6, .name = "a\nb" },
		  "PERF_RECORD_COMM: a?b:5/6" },
		{ { .kind = PTD_SIDEBAND_COMM,
		    .flags = PTD_SIDEBAND_EXEC,
		    .pid = 5,
		    .tid = 5,
		    .name = "ls" },
		  "PERF_RECORD_COMM exec: ls:5/5" },
		{ { .kind = PTD_SIDEBAND_FORK, .pid = 5, .tid = 6, .other_pid = 7, .other_tid = 8 },
		  "PERF_RECORD_FORK(5:6):(7:8)" },
		{ { .kind = PTD_SIDEBAND_EXIT, .pid = 5, .tid = 6, .other_pid = 7, .other_tid = 8 },
		  "PERF_RECORD_EXIT(5:6):(7:8)" },
		{ { .kind = PTD_SIDEBAND_ITRACE_START, .pid = 5, .tid = 6 },
		  "PERF_RECORD_ITRACE_START pid: 5 tid: 6" },
		{ { .kind = PTD_SIDEBAND_SWITCH }, "PERF_RECORD_SWITCH IN" },
		{ { .kind = PTD_SIDEBAND_SWITCH, .flags = PTD_SIDEBAND_OUT },
		  "PERF_RECORD_SWITCH OUT" },
		{ { .kind = PTD_SIDEBAND_SWITCH, .flags = PTD_SIDEBAND_OUT | PTD_SIDEBAND_PREEMPT },
		  "PERF_RECORD_SWITCH OUT preempt" },
		{ { .kind = PTD_SIDEBAND_SWITCH_CPU, .other_pid = 7, .other_tid = 8 },
		  "PERF_RECORD_SWITCH_CPU_WIDE IN          prev pid/tid:     7/8" },
		{ { .kind = PTD_SIDEBAND_SWITCH_CPU,
		    .flags = PTD_SIDEBAND_OUT,
		    .other_pid = 7,
		    .other_tid = 8 },
		  "PERF_RECORD_SWITCH_CPU_WIDE OUT         next pid/tid:     7/8" },
		{ { .kind = PTD_SIDEBAND_AUX,
		    .offset = 0x10,
		    .size = 0x20,
		    .aux_flags = PERF_AUX_FLAG_TRUNCATED | PERF_AUX_FLAG_PARTIAL },
		  "PERF_RECORD_AUX offset: 0x10 size: 0x20 flags: 0x5 [TP]" },
		{ { .kind = PTD_SIDEBAND_AUX,
		    .offset = 0x10,
		    .size = 0x20,
		    .aux_flags = PERF_AUX_FLAG_OVERWRITE | PERF_AUX_FLAG_COLLISION },
		  "PERF_RECORD_AUX offset: 0x10 size: 0x20 flags: 0xa [OC]" },
		{ { .kind = PTD_SIDEBAND_LOST, .size = 3 }, "PERF_RECORD_LOST lost 3" },
		{ { .kind = PTD_SIDEBAND_LOST_SAMPLES, .size = 4 },
		  "PERF_RECORD_LOST_SAMPLES lost 4" },
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct ptd_sideband record = rows[i].record;
		char expected[400];

		record.t = 12000000345;
		record.cpu = 3;
		record.current_pid = 41;
		record.current_tid = 42;
		begin(f, "sideband", PTD_CLOCK_NS, 0);
		assert_int_equal(sink_take_sideband(f->sink, &record), 0);
		record.t = 0;
		record.cpu = record.current_tid = UINT32_MAX;
		assert_int_equal(sink_take_sideband(f->sink, &record), 0);
		end(f);
		(void)snprintf(expected, sizeof(expected),
			       "       41/42 [003]     12.000000345: %s\n"
			       "           ? [?]      0.000000000: %s\n",
			       rows[i].expected, rows[i].expected);
		assert_text(f, expected);
	}
}

/* The other clocks, what is not known, and names that would steer a terminal. */
static void text_of_strange_things(void **state)
{
	struct fixture *f = *state;

	f->stream.batch.marks = NULL;
	f->stream.batch.n_marks = 0;
	f->stream.batch.runs = &f->stream.runs[2];
	f->stream.batch.n_runs = 1;
	f->stream.slice.pid = PTD_ID_UNKNOWN;
	f->stream.slice.tid = PTD_ID_UNKNOWN;
	f->stream.slice.comm = NULL;
	f->stream.symbols[2].name = "a\033[2J\n\177";
	f->stream.objects[0].name = "/x\ty\r";

	begin(f, "text", PTD_CLOCK_TSC, 0);
	put(f);
	end(f);
	assert_text(f, TITLE "# time in TSC ticks\n"
			     "               ?       ?/?       [003]        1000000105: "
			     "    555555556001 0f84f9efffff           jz 0x555555555000"
			     "                    a?[2J??+0x11 (/x?y?)\n");

	f->stream.slice.comm = "a name that is too\nlong";
	f->stream.slice.pid = 4000000000;
	begin(f, "text", PTD_CLOCK_NONE, 0);
	put(f);
	end(f);
	assert_text(f, TITLE "# no time in this trace\n"
			     " a name that is  4000000000/?       [003] -: "
			     "    555555556001 0f84f9efffff           jz 0x555555555000"
			     "                    a?[2J??+0x11 (/x?y?)\n");
}

/* The same block at another address: its lines are not those of the first. */
static void text_of_two_mappings(void **state)
{
	struct fixture *f = *state;
	struct ptd_run runs[3];

	for (size_t i = 0; i < ARRAY_LEN(runs); i++)
		runs[i] = f->stream.runs[2];
	runs[1].base += 0x1000;
	f->stream.batch.marks = NULL;
	f->stream.batch.n_marks = 0;
	f->stream.batch.runs = runs;
	f->stream.batch.n_runs = ARRAY_LEN(runs);
	begin(f, "text", PTD_CLOCK_NS, 0);
	put(f);
	end(f);
	assert_text(
	    f, TITLE "# time in seconds on the recorder's clock\n" HEAD(" ", "      1.000000105")
		   COLD HEAD(" ", "      1.000000105") "    555555557001 0f84f9efffff           jz "
						       "0x555555556000                    "
						       "ns::f(int)+0x11 (/bin/demo)\n" HEAD(
							   " ", "      1.000000105") COLD);
}

static void text_without_bytes(void **state)
{
	static const char *const options[] = { "no-bytes", NULL };
	struct fixture *f = *state;
	struct sunk sunk;

	f->stream.batch.n_marks = 0;
	f->stream.batch.n_runs = 1;
	sunk_begin(&sunk, "text", PTD_CLOCK_NS, options);
	assert_int_equal(sink_batch(sunk.sink, &f->stream.batch), 0);
	assert_string_equal(
	    sunk_end(&sunk, &f->stream.stats),
	    "# comm pid/tid [cpu] time: address instruction symbol+offset (object)\n"
	    "# time in seconds on the recorder's clock\n" HEAD(
		" ",
		"      1.000000005") "    555555555000 push %rbp                            "
				     "main+0x0 (/bin/demo)\n" HEAD(
					 " ",
					 "      1.000000005") "    555555555001 mov %rsp, %rbp    "
							      "                   main+0x1 "
							      "(/bin/demo)\n" HEAD(
								  " ",
								  "      1.000000005") "    "
										       "55555555500"
										       "4 call "
										       "0x555555556"
										       "000       "
										       "           "
										       "main+0x4 "
										       "(/bin/"
										       "demo)\n");
	sunk_deinit(&sunk);
}

/* What a terminal has no room for is left out, so that the instruction can be seen. */
static void text_on_terminals(void **state)
{
	static const struct {
		unsigned short columns;
		const char *expected;
	} rows[] = {
		{ 150,
		  HEAD(" ", "      1.000000005") "    555555555000 55                     push "
						 "%rbp                            main+0x0 "
						 "(/bin/\n" },
		{ 149, HEAD(" ", "      1.000000005") "    555555555000 push %rbp                "
						      "            main+0x0 (/bin/demo)\n" },
		{ 119, "      11 [003]       1.000000005:     555555555000 push %rbp              "
		       "              main+0x0 (/bin/demo)\n" },
		{ 60, "      11 [003]       1.000000005:     555555555000 push %rbp\n" },
	};
	struct fixture *f = *state;
	const struct ptd_info info = { .clock = PTD_CLOCK_NS };

	f->stream.batch.n_marks = 0;
	f->stream.batch.n_runs = 1;
	f->stream.runs[0].n = 1;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct sink_config config = { .info = &info };
		_cleanup_(freep) char *text = NULL;
		struct terminal terminal;

		terminal_open(&terminal, rows[i].columns);
		config.fd = fcntl(terminal.fd, F_DUPFD_CLOEXEC, 0);
		if (f->sink)
			f->sink = sink_free(f->sink);
		assert_int_equal(sink_new(sink_find("text"), &config, &f->sink, NULL), 0);
		put(f);
		assert_int_equal(sink_finish(f->sink, &f->stream.stats), 0);
		text = terminal_read(&terminal);
		assert_string_equal(strchr(strchr(text, '\n') + 1, '\n') + 1, rows[i].expected);
		terminal_close(&terminal);
	}
}

static void assert_begins(struct fixture *f, const char *text)
{
	assert_true(f->file.size > strlen(text));
	assert_memory_equal(f->file.bytes, text, strlen(text));
}

static void summary_overwritten(void **state)
{
	struct fixture *f = *state;
	struct ptd_info info = {
		.clock = PTD_CLOCK_NS,
		.realtime_offset_ns = 1700000000000000000,
		.bytes_overwritten = 123456,
		.complete_since = 1250000005,
	};

	begin_info(f, "summary", &info);
	put(f);
	end(f);
	assert_begins(f, "Instructions: 8\n"
			 "Overwritten: the beginning, 123456 bytes of PT; it is complete since "
			 "2023-11-14 22:13:21.250000 UTC, the last 0.750000000 s\n"
			 "Time:          1.000000000 s\n");

	/* Nothing that could be decoded is left. */
	info.complete_since = 3000000000;
	info.bytes_overwritten = 1;
	begin_info(f, "summary", &info);
	put(f);
	end(f);
	assert_begins(f, "Instructions: 8\n"
			 "Overwritten: the beginning, 1 byte of PT; it is complete since "
			 "2023-11-14 22:13:23.000000 UTC\n"
			 "Time:          1.000000000 s\n");
}

static void summary(void **state)
{
	struct fixture *f = *state;

	begin(f, "summary", PTD_CLOCK_NS, 1700000000000000000);
	put(f);
	end(f);
	assert_text(
	    f,
	    "Instructions: 8\n"
	    "Time:          1.000000000 s\n"
	    "From: 2023-11-14 22:13:21.000000 UTC\n"
	    "\n"
	    "Processes: 1\n"
	    "        instructions       %        pid  command\n"
	    "                   8  100.00         10  demo\n"
	    "\n"
	    "Threads: 1\n"
	    "        instructions       %        pid        tid  command\n"
	    "                   8  100.00         10         11  demo\n"
	    "\n"
	    "Objects: 2\n"
	    "        instructions       %  object\n"
	    "                   7   87.50  /bin/demo\n"
	    "                   1   12.50  [jit]\n"
	    "\n"
	    "Symbols: 3\n"
	    "        instructions       %  symbol (object)\n"
	    "                   6   75.00  main (/bin/demo)\n"
	    "                   1   12.50  [unknown] ([jit])\n"
	    "                   1   12.50  ns::f(int) (/bin/demo)\n"
	    "\n"
	    "Gaps: 1\n"
	    "                gaps           bytes lost  reason\n"
	    "                   1                    7  overflow\n"
	    "                   1                    7  in all\n"
	    "\n"
	    "CPUs: 1\n"
	    "  cpu        bytes in   bytes decoded      bytes lost         instructions       gaps"
	    "           time covered\n"
	    "    3             100              93               7                    8          1"
	    "          1.000000000 s\n"
	    "  all             100              93               7                    8          "
	    "1\n");
}

static void summary_of_nothing(void **state)
{
	struct fixture *f = *state;

	begin(f, "summary", PTD_CLOCK_NONE, 0);
	f->stream.stats = (struct ptd_stats){};
	end(f);
	assert_text(
	    f,
	    "Instructions: 0\n"
	    "PT: none, nothing was recorded\n\n"
	    "Processes: 0\n        instructions       %        pid  command\n\n"
	    "Threads: 0\n        instructions       %        pid        tid  command\n\n"
	    "Objects: 0\n        instructions       %  object\n\n"
	    "Symbols: 0\n        instructions       %  symbol (object)\n\n"
	    "Gaps: 0\n\n"
	    "CPUs: 0\n"
	    "  cpu        bytes in   bytes decoded      bytes lost         instructions       gaps"
	    "           time covered\n"
	    "  all               0               0               0                    0          "
	    "0\n");
}

/* Code in anonymous memory has its addresses, and a hint what would name it. */
static void summary_of_anonymous_memory(void **state)
{
	struct fixture *f = *state;
	_cleanup_(freep) char *text = NULL;

	f->stream.objects[1].name = "[anon]";
	f->stream.jit.address = STREAM_JIT;
	begin(f, "summary", PTD_CLOCK_NS, 0);
	put(f);
	end(f);
	text = strndup((const char *)f->file.bytes, f->file.size);
	assert_non_null(text);
	assert_non_null(strstr(text, "   12.50  [anon] 7f0000000000-7f0000000002\n"));
	assert_non_null(strstr(text, "   12.50  [unknown] ([anon]) 7f0000000000-7f0000000002\n"));
	assert_non_null(strstr(text, "\nCode in [anon] "));
	assert_non_null(strstr(text, "ptd-runtimes(7)\n"));
	assert_null(strstr(text, "/bin/demo 1"));
}

static void summary_as_json(void **state)
{
	static const char *const options[] = { "json", NULL };
	struct fixture *f = *state;
	struct sunk sunk;

	f->stream.slice.tid = PTD_ID_UNKNOWN;
	sunk_begin(&sunk, "summary", PTD_CLOCK_NS, options);
	assert_int_equal(sink_batch(sunk.sink, &f->stream.batch), 0);
	assert_string_equal(
	    sunk_end(&sunk, &f->stream.stats),
	    "{\n"
	    " \"format\": \"summary\",\n"
	    " \"clock\": \"ns\",\n"
	    " \"realtime_offset_ns\": 0,\n"
	    " \"instructions\": 8,\n"
	    " \"instructions_early\": 0,\n"
	    " \"instructions_claimed\": 0,\n"
	    " \"bytes_overwritten\": 0,\n"
	    " \"complete_since\": 0,\n"
	    " \"records_unknown\": 0,\n"
	    " \"records_bad\": 0,\n"
	    " \"events\": 0,\n"
	    " \"events_left_out\": 0,\n"
	    " \"missing\": [],\n"
	    " \"processes\": [\n"
	    "  {\"instructions\": 8, \"pid\": 10, \"comm\": \"demo\"}\n"
	    " ],\n"
	    " \"threads\": [\n"
	    "  {\"instructions\": 8, \"pid\": 10, \"tid\": null, \"comm\": \"demo\"}\n"
	    " ],\n"
	    " \"objects\": [\n"
	    "  {\"instructions\": 7, \"object\": \"/bin/demo\", \"first\": \"0x1000\", "
	    "\"last\": \"0x2006\"},\n"
	    "  {\"instructions\": 1, \"object\": \"[jit]\", \"first\": \"0x0\", \"last\": "
	    "\"0x1\"}\n"
	    " ],\n"
	    " \"symbols\": [\n"
	    "  {\"instructions\": 6, \"symbol\": \"main\", \"object\": \"/bin/demo\", "
	    "\"first\": \"0x1000\", \"last\": \"0x1008\"},\n"
	    "  {\"instructions\": 1, \"symbol\": null, \"object\": \"[jit]\", \"first\": "
	    "\"0x0\", \"last\": \"0x1\"},\n"
	    "  {\"instructions\": 1, \"symbol\": \"ns::f(int)\", \"object\": \"/bin/demo\", "
	    "\"first\": \"0x2000\", \"last\": \"0x2006\"}\n"
	    " ],\n"
	    " \"gaps\": [\n"
	    "  {\"reason\": \"overflow\", \"gaps\": 1, \"bytes\": 7}\n"
	    " ],\n"
	    " \"cpus\": [\n"
	    "  {\"cpu\": 3, \"bytes_in\": 100, \"bytes_decoded\": 93, \"bytes_lost\": 7, "
	    "\"bytes_out_of_scope\": 0, \"instructions\": 8, \"gaps\": 1, \"t_first\": "
	    "1000000005, \"t_last\": 2000000005}\n"
	    " ]\n"
	    "}\n");
	sunk_deinit(&sunk);
}

/* What others executed than the process that was asked for is in lines of its own. */
static void summary_of_one_process(void **state)
{
	struct fixture *f = *state;
	_cleanup_(freep) char *text = NULL;

	begin(f, "summary", PTD_CLOCK_NS, 0);
	put(f);
	f->stream.cpu.bytes_in += 41;
	f->stream.cpu.bytes_out_of_scope = 41;
	end(f);
	text = strndup((const char *)f->file.bytes, f->file.size);
	assert_non_null(text);
	assert_non_null(strstr(text, "\nOut of scope: 41 bytes of PT of what was not asked for\n"));
	assert_non_null(strstr(text, "\nGaps: 1\n"));
	assert_string_equal(strstr(text, "CPUs: "),
			    "CPUs: 1\n"
			    "  cpu        bytes in   bytes decoded      bytes lost    out of scope"
			    "         instructions       gaps           time covered\n"
			    "    3             141              93               7              41"
			    "                    8          1          1.000000000 s\n"
			    "  all             141              93               7              41"
			    "                    8          1\n");
}

/* The sum of what stands in the first column of the table called @title. */
static uint64_t column_sum(const char *text, const char *title, size_t *ret_n)
{
	const char *p = strstr(text, title);
	uint64_t sum = 0;

	assert_non_null(p);
	p = strchr(strchr(p, '\n') + 1, '\n') + 1; /* behind the title and the heads */
	for (*ret_n = 0; *p && *p != '\n'; ++*ret_n, p = strchr(p, '\n') + 1)
		sum += strtoull(p, NULL, 10);
	return sum;
}

/* More parts than are shown, runs of parts of a block: every table adds up to the whole. */
static void summary_adds_up(void **state)
{
	enum { N = 50 };
	struct fixture *f = *state;
	struct ptd_symbol symbols[N + 1] = { { .name = "" } };
	const struct ptd_symbol *by_id[N + 1] = { &symbols[0] };
	struct ptd_object objects[N];
	struct ptd_insn insns[N];
	struct ptd_block blocks[N];
	_cleanup_(freep) char *text = NULL;
	uint64_t total = 0;

	for (uint32_t i = 0; i < N; i++) {
		symbols[i + 1] = (struct ptd_symbol){ .name = "f" };
		by_id[i + 1] = &symbols[i + 1];
		insns[i] = (struct ptd_insn){ .offset = (uint16_t)i, .size = 1, .symbol = i };
		objects[i] = (struct ptd_object){ .id = i, .name = "o" };
		blocks[i] = (struct ptd_block){
			.id = 7 * i, .n_insns = N, .insns = insns, .object = &objects[i]
		};
	}
	f->stream.batch.symbols = by_id;
	f->stream.batch.n_symbols = ARRAY_LEN(by_id);
	f->stream.batch.n_runs = 1;

	begin(f, "summary", PTD_CLOCK_TSC, 0);
	for (uint32_t i = 0; i < 20000; i++) {
		struct ptd_run *run = &f->stream.runs[0];

		run->block = &blocks[i % 7 * i % N];
		run->first = (uint16_t)(i * 31 % N);
		run->n = (uint16_t)(1 + i * 17 % (N - run->first));
		total += run->n;
		f->stream.slice.pid = i % 9 ? i % 30 : PTD_ID_UNKNOWN;
		f->stream.slice.tid = i % 9 ? i % 60 : PTD_ID_UNKNOWN;
		put(f);
	}
	end(f);

	text = strndup((const char *)f->file.bytes, f->file.size);
	assert_non_null(text);
	assert_int_equal(strtoull(text + strlen("Instructions: "), NULL, 10), total);
	for (size_t i = 0; i < 4; i++) {
		static const char *const titles[] = { "\nProcesses:", "\nThreads:", "\nObjects:",
						      "\nSymbols:" };
		size_t n;

		assert_int_equal(column_sum(text, titles[i] + 1, &n), total);
		assert_int_equal(n, 21); /* with the others */
	}
	assert_non_null(strstr(text, " ?          ?  demo\n"));
}

/* --- options, and a program's own sink -------------------------------------------------------- */

static void options(void **state)
{
	struct fixture *f = *state;
	static const struct {
		const char *name, *options[3], *message;
	} bad[] = {
		{ "summary",
		  { "rows=1", "rows=x" },
		  "summary: an option has a value that it does not take" },
		{ "summary", { "rows=" }, "summary: an option has a value that it does not take" },
		{ "summary",
		  { "rows=-1" },
		  "summary: an option has a value that it does not take" },
		{ "calls",
		  { "min-duration=1h" },
		  "calls: an option has a value that it does not take" },
		{ "calls",
		  { "min-duration=99999999999s" },
		  "calls: an option has a value that it does not take" },
	};
	static const char *const one[] = { "rows=7", "rows=1", NULL };
	const struct ptd_info info = { .clock = PTD_CLOCK_NS };

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		const struct sink_config config = { .info = &info,
						    .fd = -1,
						    .options = bad[i].options };
		struct sink *sink = (struct sink *)0x1;
		_cleanup_(freep) char *message = NULL;

		assert_int_equal(sink_new(sink_find(bad[i].name), &config, &sink, &message),
				 -EINVAL);
		assert_string_equal(message, bad[i].message);
		assert_ptr_equal(sink, (struct sink *)0x1);
	}

	assert_int_equal(sink_open(sink_find("summary"), f->path, &info, one, &f->sink), 0);
	put(f);
	end(f);
	assert_non_null(memmem(f->file.bytes, f->file.size,
			       "Objects: 2\n"
			       "        instructions       %  object\n"
			       "                   7   87.50  /bin/demo\n"
			       "                   1   12.50  (1 other)\n",
			       strlen("Objects: 2\n"
				      "        instructions       %  object\n"
				      "                   7   87.50  /bin/demo\n"
				      "                   1   12.50  (1 other)\n")));
}

struct own {
	struct output *output;
	bool *is_closed;
	uint64_t n_runs, n_records;
};

static int own_open(void *state, const struct sink_config *config, struct output *output)
{
	*(struct own *)state = (struct own){ .output = output, .is_closed = config->userdata };
	output_printf(output, "%s\n", sink_option(config, "title") ?: "?");
	return 0;
}

static int own_sideband(void *state, const struct ptd_sideband *record)
{
	struct own *own = state;

	(void)record;
	own->n_records++;
	return output_write(own->output, "e", 1);
}

static int own_expand(const void *state, void *memory, const struct ptd_batch *batch,
		      struct output *output)
{
	(void)state;
	assert_null(memory);
	for (size_t i = 0; i < batch->n_runs; i++)
		output_printf(output, "%u,", batch->runs[i].n);
	return 0;
}

static int own_write(void *state, const struct ptd_batch *batch, const void *bytes, size_t n_bytes)
{
	struct own *own = state;

	own->n_runs += batch->n_runs;
	output_printf(own->output, "[%.*s]", (int)n_bytes, (const char *)bytes);
	return 0;
}

static int own_finish(void *state, const struct ptd_stats *stats, struct output *output)
{
	const struct own *own = state;

	output_printf(output, "%" PRIu64 " runs of %" PRIu64 "\n", own->n_runs,
		      stats->cpus[0].n_insns);
	return 0;
}

static void own_close(void *state)
{
	*((struct own *)state)->is_closed = true;
}

static const struct sink_option own_options[] = { { .name = "title", .value = "TEXT" }, {} };

static void own_sink(void **state)
{
	static const char *const title[] = { "title=a=b", NULL };
	struct fixture *f = *state;
	bool is_closed = false;
	const struct sink_ops ops = {
		.name = "own",
		.options = own_options,
		.state_size = sizeof(struct own),
		.open = own_open,
		.sideband = own_sideband,
		.expand = own_expand,
		.write = own_write,
		.finish = own_finish,
		.close = own_close,
	};
	struct sink_config config = {
		.is_emptied = true,
		.options = title,
		.userdata = &is_closed,
	};

	config.fd = sink_target_open(&ops, f->path);
	assert_int_equal(sink_new(&ops, &config, &f->sink, NULL), 0);
	assert_true(sink_wants_sideband(f->sink) && sink_wants_batches(f->sink));
	assert_int_equal(sink_take_sideband(f->sink, &(struct ptd_sideband){}), 0);
	put(f);
	put(f);
	assert_null(sink_omission(f->sink));
	end(f);
	assert_text(f, "a=b\ne[3,3,1,1,][3,3,1,1,]8 runs of 8\n");
	assert_false(is_closed);
	f->sink = sink_free(f->sink);
	assert_true(is_closed);
}

/* It writes, and has nothing to write to. */
static void without_output(void **state)
{
	struct fixture *f = *state;
	bool is_closed = false;
	const struct sink_ops ops = {
		.name = "own",
		.state_size = sizeof(struct own),
		.open = own_open,
		.expand = own_expand,
		.finish = own_finish,
		.close = own_close,
	};
	const struct sink_config config = { .fd = -1, .userdata = &is_closed };

	assert_int_equal(sink_new(&ops, &config, &f->sink, NULL), 0);
	assert_int_equal(sink_batch(f->sink, &f->stream.batch), 0);
	assert_int_equal(sink_finish(f->sink, &f->stream.stats), -EBADF);
	f->sink = sink_free(f->sink);
}

/* Whoever expands what first: the bytes are the same. */
static void expanded_by_workers(void **state)
{
	struct fixture *f = *state;
	const struct ptd_info info = { .clock = PTD_CLOCK_NS };
	struct ptd_batch second;
	size_t n_kinds = 0;

	for (size_t k = 0; sink_at(k); k++) {
		struct sink_worker workers[2] = {};
		struct sink_bytes bytes[2] = { sink_bytes_none(), sink_bytes_none() };
		_cleanup_(mapfile_deinit) struct mapfile expected = {};

		if (!sink_at(k)->expand || sink_at(k)->directories)
			continue;
		n_kinds++;
		second = f->stream.batch;
		second.runs++;
		second.n_runs--;
		second.marks = NULL;
		second.n_marks = 0;

		begin(f, sink_at(k)->name, PTD_CLOCK_NS, 0);
		put(f);
		assert_int_equal(sink_batch(f->sink, &second), 0);
		assert_int_equal(sink_batch(f->sink, &second), 0);
		end(f);
		expected = f->file;
		f->file = (struct mapfile){};
		sink_free(f->sink);
		unlink(f->path);

		assert_int_equal(sink_open(sink_at(k), f->path, &info, NULL, &f->sink), 0);
		assert_true(sink_expands(f->sink));
		for (size_t i = 0; i < 2; i++)
			assert_int_equal(sink_worker_init(&workers[i], f->sink), 0);
		assert_int_equal(sink_worker_expand(&workers[0], &second, &bytes[0]), 0);
		assert_int_equal(sink_worker_expand(&workers[1], &f->stream.batch, &bytes[1]), 0);
		assert_int_equal(sink_worker_expand(&workers[0], &second, &bytes[1]), 0);
		assert_int_equal(sink_write(f->sink, &f->stream.batch, &bytes[1]), 0);
		assert_int_equal(sink_write(f->sink, &second, &bytes[1]), 0);
		assert_int_equal(sink_write(f->sink, &second, &bytes[0]), 0);
		end(f);
		assert_int_equal(f->file.size, expected.size);
		assert_memory_equal(f->file.bytes, expected.bytes, expected.size);
		for (size_t i = 0; i < 2; i++) {
			sink_worker_deinit(&workers[i]);
			sink_bytes_deinit(&bytes[i]);
		}
	}
	assert_int_equal(n_kinds, 3);
}

struct writing {
	struct fixture *fixture;
	const char *name;
	char *expected;
};

static int write_all(void *userdata)
{
	const struct ptd_info info = { .clock = PTD_CLOCK_NS };
	struct writing *w = userdata;
	const struct sink_ops *ops = sink_find(w->name);
	struct sink *sink = NULL;
	int r;

	r = sink_open(ops, w->fixture->path, &info, NULL, &sink);
	if (r < 0) {
		assert_null(sink);
		return r;
	}
	for (unsigned i = 0; i < 3 && r == 0; i++)
		r = sink_batch(sink, &w->fixture->stream.batch);
	if (r == 0)
		r = sink_finish(sink, &w->fixture->stream.stats);
	sink_free(sink);
	return r;
}

static void is_written(void *userdata)
{
	struct writing *w = userdata;

	assert_int_equal(mapfile_read(&w->fixture->file, AT_FDCWD, w->fixture->path), 0);
	assert_text(w->fixture, w->expected);
	mapfile_deinit(&w->fixture->file);
}

static void calls_that_fail(void **state)
{
	static const char *const names[] = { "text",  "addresses", "summary", "branches",
					     "calls", "functions", "stacks" };
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		struct writing w = { .fixture = f, .name = names[i] };

		print_message("  %s\n", names[i]);
		assert_int_equal(write_all(&w), 0);
		assert_int_equal(mapfile_read(&f->file, AT_FDCWD, f->path), 0);
		w.expected = strndup((const char *)f->file.bytes, f->file.size);
		mapfile_deinit(&f->file);
		failing_each(write_all, is_written, &w);
		free(w.expected);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(registry),
		cmocka_unit_test(reasons),
		cmocka_unit_test(open_errors),
		cmocka_unit_test_setup_teardown(addresses, setup, teardown),
		cmocka_unit_test_setup_teardown(addresses_of_long_runs, setup, teardown),
		cmocka_unit_test_setup_teardown(text, setup, teardown),
		cmocka_unit_test_setup_teardown(text_of_many_slices, setup, teardown),
		cmocka_unit_test_setup_teardown(text_of_all_marks, setup, teardown),
		cmocka_unit_test_setup_teardown(sideband, setup, teardown),
		cmocka_unit_test_setup_teardown(text_of_strange_things, setup, teardown),
		cmocka_unit_test_setup_teardown(text_of_two_mappings, setup, teardown),
		cmocka_unit_test_setup_teardown(text_without_bytes, setup, teardown),
		cmocka_unit_test_setup_teardown(text_on_terminals, setup, teardown),
		cmocka_unit_test_setup_teardown(summary_overwritten, setup, teardown),
		cmocka_unit_test_setup_teardown(summary, setup, teardown),
		cmocka_unit_test_setup_teardown(summary_of_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(summary_of_one_process, setup, teardown),
		cmocka_unit_test_setup_teardown(summary_of_anonymous_memory, setup, teardown),
		cmocka_unit_test_setup_teardown(summary_as_json, setup, teardown),
		cmocka_unit_test_setup_teardown(summary_adds_up, setup, teardown),
		cmocka_unit_test_setup_teardown(options, setup, teardown),
		cmocka_unit_test_setup_teardown(own_sink, setup, teardown),
		cmocka_unit_test_setup_teardown(without_output, setup, teardown),
		cmocka_unit_test_setup_teardown(expanded_by_workers, setup, teardown),
		cmocka_unit_test_setup_teardown(calls_that_fail, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
