/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Memtrace: a trace that holds something of everything and is accepted; then the same trace spoiled
 * one rule at a time, each of which must be reported, in its words, and nothing else with it.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <minizip/zip.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#include "decoder/drmemtrace/tracerecord.h"
#include "tests/judge/judge_code.h"
#include "tests/judge/memtrace.h"
#include "tests/lib/tempdir.h"

#define TIME      (11644473600000000u + 1700000000000000u)
#define MAX_SPOIL 8

struct labelled {
	const char *label; /* NULL if no row needs one */
	struct record rec;
};

#define REC(t, s, a)                                  \
	{                                             \
		.type = (t), .size = (s), .addr = (a) \
	}
#define MARKER(kind, value) REC(RECORD_MARKER, kind, value)
#define CODE(n, bytes)      REC(RECORD_ENCODING, n, bytes)

static const struct labelled base[] = {
	{ "header", REC(25, 0, 7) },
	{ "version", MARKER(12, 7) },
	{ "type", MARKER(9, 0x344) },
	{ "thread", REC(22, 4, 1001) },
	{ "pid", REC(24, 4, 1000) },
	{ "line", MARKER(10, 64) },
	{ "chunk", MARKER(20, 10000000) },
	{ "page", MARKER(18, 4096) },
	{ "time", MARKER(2, TIME) },
	{ "cpu", MARKER(3, 1) },
	{ "window 0", MARKER(14, 0) },
	{ "mov code", CODE(5, 0x1b8) }, /* mov $1,%eax */
	{ "mov", REC(10, 5, 0x401000) },
	{ "long code", CODE(8, 0x060504030201bb48) }, /* movabs */
	{ "long code 2", CODE(2, 0x0807) },
	{ "long", REC(10, 10, 0x401005) },
	{ "test code", CODE(2, 0xc085) }, /* test %eax,%eax */
	{ NULL, REC(10, 2, 0x40100f) },
	{ "untaken code", CODE(2, 0x0274) }, /* je 0x401015 */
	{ "untaken", REC(49, 2, 0x401011) },
	{ NULL, CODE(2, 0x0175) }, /* jne 0x401016 */
	{ "taken", REC(48, 2, 0x401013) },
	{ "call code", CODE(5, 0x00000fe5e8) },
	{ "call", REC(14, 5, 0x401016) }, /* 0x402000 */
	{ "rep code", CODE(2, 0xaaf3) },  /* rep stosb */
	{ "rep", REC(10, 2, 0x402000) },
	{ "ret code", CODE(1, 0xc3) },
	{ "ret target", MARKER(29, 0x40101b) },
	{ "ret", REC(16, 1, 0x402002) },
	{ "ijump code", CODE(2, 0xe0ff) }, /* jmp *%rax */
	{ "ijump target", MARKER(29, 0x40101f) },
	{ "ijump", REC(12, 2, 0x40101b) },
	{ "nop code", CODE(1, 0x90) },
	{ "nop", REC(10, 1, 0x40101f) },
	{ "time 2", MARKER(2, TIME + 10) },
	{ "cpu 2", MARKER(3, 0) },
	{ NULL, CODE(2, 0x050f) },
	{ "syscall", REC(10, 2, 0x401020) },
	{ NULL, CODE(1, 0x90) },
	{ "before signal", REC(10, 1, 0x401022) },
	{ "signal", MARKER(0, 0x401023) },
	{ "number", MARKER(40, 10) },
	{ "time 3", MARKER(2, TIME + 20) },
	{ "cpu 3", MARKER(3, 0) },
	{ NULL, CODE(1, 0x90) },
	{ "handler", REC(10, 1, 0x403000) },
	{ NULL, CODE(1, 0xc3) },
	{ "handler target", MARKER(29, 0x403100) },
	{ "handler ret", REC(16, 1, 0x403001) },
	{ "restorer code", CODE(7, 0x0fc0c748) }, /* mov $15,%rax */
	{ "restorer", REC(10, 7, 0x403100) },
	{ NULL, CODE(2, 0x050f) },
	{ "sigreturn", REC(10, 2, 0x403107) },
	{ "transfer", MARKER(1, 0x403109) },
	{ "jump code", CODE(2, 0x00eb) },
	{ "jump", REC(11, 2, 0x401023) },
	{ NULL, CODE(2, 0xd0ff) }, /* call *%rax */
	{ "icall target", MARKER(29, 0x401020) },
	{ "icall", REC(15, 2, 0x401025) },
	{ "again", REC(10, 2, 0x401020) },
	{ "again 2", REC(10, 1, 0x401022) },
	{ "window", MARKER(14, 1) },
	{ "elsewhere code", CODE(2, 0x340f) }, /* sysenter */
	{ "elsewhere", REC(31, 2, 0x405000) },
	{ "transfer 2", MARKER(1, 0x405002) }, /* unpaired */
	{ NULL, CODE(1, 0x90) },
	{ "last", REC(10, 1, 0x406000) },
	{ "same window", MARKER(14, 1) },
	{ "user", MARKER(101, 42) },
	{ "exit", REC(23, 4, 1001) },
	{ "footer", REC(26, 0, 0) },
};

/* The trace that is spoiled. */
static const struct labelled *records_of = base;
static size_t n_records_of = ARRAY_LEN(base);

enum op { END, OP_SET, OP_DEL, OP_PUT };

#define SET(l, ...)                                            \
	{                                                      \
		.op = OP_SET, .label = (l), .rec = __VA_ARGS__ \
	}
#define DEL(l)                             \
	{                                  \
		.op = OP_DEL, .label = (l) \
	}
/* Put one in before the labelled record. */
#define PUT(l, ...)                                            \
	{                                                      \
		.op = OP_PUT, .label = (l), .rec = __VA_ARGS__ \
	}

struct spoil {
	const char *name;
	struct {
		enum op op;
		const char *label;
		struct record rec;
	} edits[MAX_SPOIL];
	const char *text;  /* in the fault; NULL if there is to be none */
	unsigned n_faults; /* if there is more than one */
};

static size_t find(const struct labelled *records, size_t n, const char *label)
{
	for (size_t i = 0; i < n; i++) {
		if (records[i].label && strcmp(records[i].label, label) == 0)
			return i;
	}
	fail_msg("no record is called %s", label);
	return 0;
}

/* The spoiled trace's bytes; the caller frees. */
static uint8_t *build(const struct spoil *spoil, size_t *ret_size)
{
	struct labelled records[ARRAY_LEN(base) + MAX_SPOIL];
	size_t n = n_records_of;
	uint8_t *bytes;

	assert_true(n <= ARRAY_LEN(base));
	memcpy(records, records_of, n * sizeof(*records));
	for (size_t e = 0; spoil && e < MAX_SPOIL && spoil->edits[e].op != END; e++) {
		const size_t i = find(records, n, spoil->edits[e].label);

		if (spoil->edits[e].op == OP_DEL) {
			memmove(records + i, records + i + 1, (--n - i) * sizeof(*records));
			continue;
		}
		if (spoil->edits[e].op == OP_PUT) {
			memmove(records + i + 1, records + i, (n++ - i) * sizeof(*records));
			records[i].label = NULL;
		}
		records[i].rec = spoil->edits[e].rec;
	}

	bytes = malloc(n * RECORD_SIZE);
	assert_non_null(bytes);
	for (size_t i = 0; i < n; i++) {
		memcpy(bytes + i * RECORD_SIZE, &records[i].rec.type, 2);
		memcpy(bytes + i * RECORD_SIZE + 2, &records[i].rec.size, 2);
		memcpy(bytes + i * RECORD_SIZE + 4, &records[i].rec.addr, 8);
	}
	*ret_size = n * RECORD_SIZE;
	return bytes;
}

/* Check the bytes. Return: the faults' text; the caller frees. */
static char *judge(const uint8_t *bytes, size_t size, uint64_t *ret_n_faults,
		   struct memtrace_file *ret_file)
{
	struct memtrace trace = {};
	char *text = NULL;
	size_t n_text;

	trace.faults = open_memstream(&text, &n_text);
	assert_non_null(trace.faults);
	assert_int_equal(memtrace_check_bytes(&trace, "T", bytes, size, ret_file), 0);
	assert_int_equal(fclose(trace.faults), 0);
	*ret_n_faults = trace.n_faults;
	return text;
}

static void run_rows(const struct spoil *rows, size_t n_rows)
{
	for (size_t i = 0; i < n_rows; i++) {
		_cleanup_(freep) uint8_t *bytes = NULL;
		_cleanup_(freep) char *text = NULL;
		struct memtrace_file file;
		uint64_t n_faults;
		size_t size;

		print_message("  %s\n", rows[i].name);
		bytes = build(&rows[i], &size);
		text = judge(bytes, size, &n_faults, &file);
		if (!rows[i].text) {
			assert_string_equal(text, "");
			assert_int_equal(n_faults, 0);
			continue;
		}
		if (!strstr(text, rows[i].text))
			fail_msg("expected: %s\ngot: %s", rows[i].text, text);
		if (n_faults != (rows[i].n_faults ? rows[i].n_faults : 1))
			fail_msg("too many or too few faults:\n%s", text);
	}
}

static void header(void **state)
{
	static const struct spoil rows[] = {
		{ .name = "as it should be", {}, NULL },
		{ .name = "no header",
		  { DEL("header") },
		  "record 0 (byte 0): not a trace: the first record is no header (type 25)" },
		{ .name = "header size",
		  { SET("header", REC(25, 1, 7)) },
		  "the header's size field is 0, not 1" },
		{ .name = "older version",
		  { SET("header", REC(25, 0, 4)), SET("version", MARKER(12, 4)) },
		  "the header (type 25) is 4, not 5 to 7",
		  2 },
		{ .name = "newer version",
		  { SET("header", REC(25, 0, 8)), SET("version", MARKER(12, 8)) },
		  "the version (marker 12) is 8, not 5 to 7",
		  2 },
		{ .name = "version 6",
		  { SET("header", REC(25, 0, 6)), SET("version", MARKER(12, 6)) },
		  NULL },
		{ .name = "no version",
		  { DEL("version") },
		  "the version (marker 12) is missing here" },
		{ .name = "other version",
		  { SET("version", MARKER(12, 5)) },
		  "the version (marker 12) is 5, but that of the header (type 25) is 7" },
		{ .name = "no file type",
		  { DEL("type") },
		  "the file type (marker 9) is missing here" },
		{ .name = "bits without meaning",
		  { SET("type", MARKER(9, 0x80344)) },
		  "the file type (marker 9) 0x80344 has bits that mean nothing" },
		{ .name = "of another machine",
		  { SET("type", MARKER(9, 0x314)) },
		  "the file type (marker 9) 0x314 is not that of x86-64 (0x40)" },
		{ .name = "without encodings",
		  { SET("type", MARKER(9, 0x144)) },
		  "the file type (marker 9) 0x144 states that there are no encodings (no 0x200)" },
		{ .name = "accesses are missed",
		  { SET("type", MARKER(9, 0x244)) },
		  "the file type (marker 9) 0x244 states instructions only (0x4) but not that "
		  "data are left out (0x100)" },
		{ .name = "whole system and data of the kernel",
		  { SET("type", MARKER(9, 0x41240)), DEL("signal"), DEL("number") },
		  "has 0x40000 and 0x1000, which exclude each other",
		  2 },
		{ .name = "no thread",
		  { DEL("thread"), DEL("exit") },
		  "the thread (type 22) is missing here",
		  2 },
		{ .name = "thread 0",
		  { SET("thread", REC(22, 4, 0)), SET("exit", REC(23, 4, 0)) },
		  "the thread (type 22) is 0, which means none" },
		{ .name = "idle thread",
		  { SET("thread", REC(22, 4, UINT64_MAX)), SET("exit", REC(23, 4, UINT64_MAX)) },
		  "the thread (type 22) is 0xffffffffffffffff, not below 2^48" },
		{ .name = "no pid", { DEL("pid") }, "the pid (type 24) is missing here" },
		{ .name = "pid 0", { SET("pid", REC(24, 4, 0)) }, "the pid (type 24) is 0" },
		{ .name = "pid before thread",
		  { DEL("pid"), PUT("thread", REC(24, 4, 1000)) },
		  "record 3 (byte 36): the thread (type 22) is missing here",
		  2 },
		{ .name = "instruction before the pid",
		  { PUT("pid", CODE(1, 0x90)), PUT("pid", REC(10, 1, 0x401000)) },
		  "record 4 (byte 48): the pid (type 24) is missing here",
		  9 },
		{ .name = "no cache line",
		  { DEL("line") },
		  "the cache line size (marker 10) is missing here" },
		{ .name = "cache line",
		  { SET("line", MARKER(10, 32)) },
		  "the cache line size (marker 10) is 32 (0x20), not 64 (0x40)" },
		{ .name = "no chunk size", { DEL("chunk") }, NULL },
		{ .name = "chunk size",
		  { SET("chunk", MARKER(20, 0)) },
		  "the chunk instruction count (marker 20) is 0" },
		{ .name = "no page size",
		  { DEL("page") },
		  "record 7 (byte 84): the page size (marker 18) is missing here" },
		{ .name = "page size",
		  { SET("page", MARKER(18, 8192)) },
		  "the page size (marker 18) is 8192 (0x2000), not 4096 (0x1000)" },
		{ .name = "a second header",
		  { PUT("exit", REC(25, 0, 7)) },
		  "a second header (type 25)" },
		{ .name = "a second thread",
		  { PUT("exit", REC(22, 4, 1001)) },
		  "a second thread or pid (type 22), but a file holds one thread" },
		{ .name = "a second pid",
		  { PUT("exit", REC(24, 4, 1000)) },
		  "a second thread or pid (type 24)" },
		{ .name = "no time",
		  { DEL("time"), DEL("cpu") },
		  "the first timestamp and cpu come before the first instruction" },
	};

	(void)state;
	run_rows(rows, ARRAY_LEN(rows));
}

/* movl $1,disp(%rip) at 0x401005, whose data are at 0x4070301f. */
#define STORE SET("long code", CODE(8, 0x00014030201005c7)), SET("long code 2", CODE(2, 0))

/* Data whose addresses follow from the instruction. */
static void data(void **state)
{
	static const struct spoil rows[] = {
		{ .name = "its data",
		  { SET("type", MARKER(9, 0x340)), STORE, PUT("test code", REC(1, 4, 0x4070301f)) },
		  NULL },
		{ .name = "all but its data", { SET("type", MARKER(9, 0x340)), STORE }, NULL },
		{ .name = "other data",
		  { SET("type", MARKER(9, 0x340)), STORE, PUT("test code", REC(1, 4, 0x40703020)) },
		  "type 1 is at 0x40703020, but the data of the instruction at 0x401005 are at "
		  "0x4070301f" },
		{ .name = "data at an address in a register",
		  { SET("type", MARKER(9, 0x340)), PUT("ret code", REC(1, 8, 0x7fff0000)) },
		  NULL },
		{ .name = "instructions only",
		  { STORE, PUT("test code", REC(1, 4, 0x4070301f)) },
		  "a data access has no place in an instruction-only trace" },
	};

	(void)state;
	run_rows(rows, ARRAY_LEN(rows));
}

static void ending(void **state)
{
	static const struct spoil rows[] = {
		{ .name = "no exit",
		  { DEL("exit") },
		  "the thread's exit (type 23) is missing before the footer" },
		{ .name = "another thread's exit",
		  { SET("exit", REC(23, 4, 7)) },
		  "thread 7 exits in the file of thread 1001" },
		{ .name = "not last",
		  { PUT("footer", MARKER(101, 1)) },
		  "only the footer follows",
		  2 },
		{ .name = "no footer",
		  { DEL("footer") },
		  "record 70 (byte 840): the trace is truncated: no footer (type 26) at its end" },
		{ .name = "footer's size",
		  { SET("footer", REC(26, 1, 0)) },
		  "the footer (type 26) is zero besides its type" },
		{ .name = "footer's value",
		  { SET("footer", REC(26, 0, 1)) },
		  "the footer (type 26) is zero besides its type" },
		{ .name = "something behind",
		  { PUT("footer", REC(26, 0, 0)) },
		  "something follows the footer" },
		{ .name = "encoding at the end",
		  { PUT("exit", CODE(1, 0x90)) },
		  "an encoding is directly followed by its instruction" },
	};

	(void)state;
	run_rows(rows, ARRAY_LEN(rows));
}

static void instructions(void **state)
{
	static const struct spoil rows[] = {
		{ .name = "size 0",
		  { SET("mov", REC(10, 0, 0x401000)) },
		  "has 1 to 15 bytes, not 0",
		  2 },
		{ .name = "size 16",
		  { SET("mov", REC(10, 16, 0x401000)) },
		  "1 to 15 bytes, not 16",
		  2 },
		{ .name = "pc 0",
		  { SET("mov", REC(10, 5, 0)) },
		  "0 is no address of user code",
		  2 },
		{ .name = "kernel pc",
		  { SET("last", REC(10, 1, 0xffffffff81000000)) },
		  "0xffffffff81000000 is no address of user code" },
		{ .name = "vsyscall page", { SET("last", REC(10, 1, 0xffffffffff600000)) }, NULL },
		{ .name = "no encoding",
		  { DEL("mov code") },
		  "record 11 (byte 132): the first instruction at 0x401000 in this file has no "
		  "encoding" },
		{ .name = "encoding too short",
		  { SET("mov code", CODE(4, 0x1b8)) },
		  "an encoding of 4 bytes is given for an instruction of size 5",
		  2 },
		{ .name = "encoding too long",
		  { SET("nop code", CODE(2, 0x9090)) },
		  "an encoding of 2 bytes is given for an instruction of size 1",
		  2 },
		{ .name = "not the instruction's length",
		  { SET("mov code", CODE(6, 0x1b8)), SET("mov", REC(10, 6, 0x401000)) },
		  "the encoding has 6 bytes, but its instruction only 5" },
		{ .name = "no instruction",
		  { SET("mov code", CODE(5, 0x06)) },
		  "the encoding is no instruction" },
		{ .name = "second size",
		  { SET("again", REC(10, 3, 0x401020)) },
		  "the instruction at 0x401020 has size 3, but its last encoding 2 bytes" },
		{ .name = "piece of 0",
		  { PUT("mov code", CODE(0, 0)) },
		  "has 1 to 8 bytes, not 0" },
		{ .name = "piece of 9",
		  { PUT("mov code", CODE(9, 0)) },
		  "has 1 to 8 bytes, not 9" },
		{ .name = "short first piece",
		  { SET("long code", CODE(7, 0x0504030201bb48)),
		    SET("long code 2", CODE(3, 0x080706)) },
		  "every piece of an encoding but the last has 8 bytes",
		  3 },
		{ .name = "16 bytes",
		  { SET("long code 2", CODE(8, 0x0807)) },
		  "an encoding has at most 15 bytes, not 16",
		  2 },
		{ .name = "encoding for nothing",
		  { PUT("time 2", CODE(1, 0x90)) },
		  "an encoding is directly followed by its instruction" },
		{ .name = "encoding again", { PUT("again 2", CODE(1, 0x90)) }, NULL },
		{ .name = "code changed",
		  { PUT("again 2", CODE(2, 0xc031)), SET("again 2", REC(10, 2, 0x401022)) },
		  NULL },
		{ .name = "syscall by int 0x80",
		  { SET("elsewhere code", CODE(2, 0x80cd)),
		    SET("elsewhere", REC(10, 2, 0x405000)) },
		  NULL },
		{ .name = "type 13",
		  { SET("taken", REC(13, 2, 0x401013)) },
		  "type 13 is the old form of conditional jumps" },
		{ .name = "branch as plain",
		  { SET("call", REC(10, 5, 0x401016)) },
		  "a direct call at 0x401016 has type 14, not 10" },
		{ .name = "plain as branch",
		  { SET("mov", REC(11, 5, 0x401000)) },
		  "an instruction that is no branch at 0x401000 has type 10, not 11" },
		{ .name = "jump as call",
		  { SET("jump", REC(14, 2, 0x401023)) },
		  "a direct jump at 0x401023 has type 11, not 14" },
		{ .name = "conditional as jump",
		  { SET("taken", REC(11, 2, 0x401013)) },
		  "a conditional jump at 0x401013 has type 48 or 49, not 11" },
		{ .name = "indirect as direct",
		  { SET("ijump", REC(11, 2, 0x40101b)) },
		  "an indirect jump at 0x40101b has type 12, not 11" },
		{ .name = "indirect call as jump",
		  { SET("icall", REC(12, 2, 0x401025)) },
		  "an indirect call at 0x401025 has type 15, not 12" },
		{ .name = "return as jump",
		  { SET("ret", REC(12, 1, 0x402002)) },
		  "a return at 0x402002 has type 16, not 12" },
		{ .name = "syscall as sysenter",
		  { SET("syscall", REC(31, 2, 0x401020)) },
		  "a syscall at 0x401020 has type 10, not 31" },
		{ .name = "sysenter as plain",
		  { SET("elsewhere", REC(10, 2, 0x405000)) },
		  "a sysenter at 0x405000 has type 31, not 10" },
		{ .name = "int 0x80 as sysenter",
		  { SET("elsewhere code", CODE(2, 0x80cd)) },
		  "an int 0x80 at 0x405000 has type 10, not 31" },
	};

	(void)state;
	run_rows(rows, ARRAY_LEN(rows));
}

static void targets(void **state)
{
	static const struct spoil rows[] = {
		{ .name = "jump without", { DEL("ijump target") }, "0x40101b has no marker 29", 2 },
		{ .name = "call without", { DEL("icall target") }, "0x401025 has no marker 29", 2 },
		{ .name = "return without", { DEL("ret target") }, "0x402002 has no marker 29", 2 },
		{ .name = "target 0",
		  { SET("ret target", MARKER(29, 0)) },
		  "marker 29 is 0: an indirect branch's target is what really followed",
		  2 },
		{ .name = "another target",
		  { SET("ret target", MARKER(29, 0x40101c)) },
		  "marker 29 says that the indirect branch at 0x402002 goes to 0x40101c, but the "
		  "next "
		  "instruction is 0x40101b" },
		{ .name = "another target than was interrupted",
		  { PUT("ijump code", MARKER(0, 0x40101c)), PUT("ijump code", CODE(1, 0x90)),
		    PUT("ijump code", REC(10, 1, 0x403000)), PUT("ijump code", MARKER(14, 1)),
		    SET("window", MARKER(14, 2)), SET("same window", MARKER(14, 2)) },
		  "goes to 0x40101b, but the interrupted pc is 0x40101c" },
		{ .name = "before the encoding",
		  { DEL("ret target"), PUT("ret code", MARKER(29, 0x40101b)) },
		  NULL },
		{ .name = "before a direct jump",
		  { PUT("jump", MARKER(29, 0x401025)) },
		  "a marker 29 stands before an instruction that is no indirect branch" },
		{ .name = "before a plain instruction",
		  { PUT("again", MARKER(29, 0x401022)) },
		  "a marker 29 stands before an instruction that is no indirect branch" },
		{ .name = "before nothing",
		  { PUT("time 2", MARKER(29, 0x401022)) },
		  "an indirect branch's marker 29 is directly followed by its instruction" },
		{ .name = "twice",
		  { PUT("ret target", MARKER(29, 0x40101b)) },
		  "an indirect branch has one marker 29" },
	};

	(void)state;
	run_rows(rows, ARRAY_LEN(rows));
}

static void flow(void **state)
{
	static const struct spoil rows[] = {
		{ .name = "instruction left out",
		  { DEL("again") },
		  "marker 29 says that the indirect branch at 0x401025 goes to 0x401020, but the "
		  "next "
		  "instruction is 0x401022" },
		{ .name = "broken fall-through",
		  { DEL("long"), DEL("long code"), DEL("long code 2") },
		  "control flow is broken: after the instruction at 0x401000 comes 0x401005, but "
		  "the "
		  "next instruction is 0x40100f" },
		{ .name = "broken direct branch",
		  { SET("call code", CODE(5, 0x00000fe6e8)) },
		  "the direct branch at 0x401016 goes to 0x402001, but the next instruction is "
		  "0x402000" },
		{ .name = "taken, but is not",
		  { SET("untaken", REC(48, 2, 0x401011)) },
		  "the conditional jump at 0x401011 is taken (48) to 0x401015, but the next "
		  "instruction "
		  "is 0x401013" },
		{ .name = "untaken, but is taken",
		  { SET("taken", REC(49, 2, 0x401013)) },
		  "the conditional jump at 0x401013 is untaken (49) and falls through to 0x401015, "
		  "but "
		  "the next instruction is 0x401016" },
		{ .name = "untaken to its own fall-through",
		  { SET("untaken code", CODE(2, 0x0074)) },
		  "a conditional jump to its own fall-through counts as taken (48), but the one at "
		  "0x401011 has type 49" },
		{ .name = "taken to its own fall-through",
		  { SET("untaken code", CODE(2, 0x0074)), SET("untaken", REC(48, 2, 0x401011)) },
		  NULL },
		{ .name = "rep twice",
		  { PUT("ret code", REC(10, 2, 0x402000)) },
		  "the rep string instruction at 0x402000 has more than one record" },
		{ .name = "system call restarted, unmarked",
		  { PUT("again 2", REC(10, 2, 0x401020)) },
		  "the system call at 0x401020 lands elsewhere than behind itself without a marker "
		  "1: "
		  "the next instruction is 0x401020" },
		{ .name = "system call restarted",
		  { PUT("again 2", MARKER(1, 0x401022)), PUT("again 2", REC(10, 2, 0x401020)) },
		  NULL },
		{ .name = "landing, unmarked",
		  { DEL("transfer 2") },
		  "the system call at 0x405000 lands elsewhere than behind itself without a marker "
		  "1" },
		{ .name = "gap, unmarked",
		  { DEL("window") },
		  "after the instruction at 0x401022 comes 0x401023, but the next instruction is "
		  "0x405000" },
		{ .name = "gap with the same window",
		  { SET("window", MARKER(14, 0)) },
		  "after the instruction at 0x401022 comes 0x401023" },
		{ .name = "two windows", { SET("same window", MARKER(14, 2)) }, NULL },
		{ .name = "one window, which is not 0", { DEL("window 0") }, NULL },
		{ .name = "two windows, the first of which is not 0",
		  { DEL("window 0"), SET("same window", MARKER(14, 2)) },
		  "a file's first marker 14 (window) is 0 if another follows, not 1" },
		{ .name = "three windows, the first of which is not 0",
		  { SET("window 0", MARKER(14, 1)), SET("window", MARKER(14, 2)),
		    SET("same window", MARKER(14, 3)) },
		  "a file's first marker 14 (window) is 0 if another follows, not 1" },
		{ .name = "window goes back",
		  { SET("same window", MARKER(14, 0)) },
		  "marker 14 (window) has an ordinal, but 0 follows 1" },
		{ .name = "direct jump elsewhere",
		  { SET("jump code", CODE(2, 0xfeeb)) },
		  "the direct branch at 0x401023 goes to 0x401023, but the next instruction is "
		  "0x401025" },
	};

	(void)state;
	run_rows(rows, ARRAY_LEN(rows));
}

static void signals(void **state)
{
	static const struct spoil rows[] = {
		{ .name = "without pc",
		  { SET("signal", MARKER(0, 0)) },
		  "marker 0 (signal) does not carry the interrupted pc",
		  2 },
		{ .name = "wrong pc",
		  { SET("signal", MARKER(0, 0x401024)) },
		  "after the instruction at 0x401022 comes 0x401023, but the interrupted pc is "
		  "0x401024",
		  2 },
		{ .name = "resumes elsewhere",
		  { PUT("jump code", CODE(1, 0x90)), PUT("jump code", REC(10, 1, 0x401022)) },
		  "resumes at 0x401022, but the signal (marker 0) interrupted 0x401023" },
		{ .name = "resumes at the same pc again",
		  { SET("signal", MARKER(0, 0x401022)), PUT("jump code", REC(10, 1, 0x401022)) },
		  NULL },
		{ .name = "no return",
		  { DEL("transfer") },
		  "the system call at 0x403107 lands elsewhere than behind itself without a marker "
		  "1" },
		{ .name = "return without system call",
		  { PUT("same window", MARKER(1, 0x406001)) },
		  "marker 1 (return from a signal, execve) does not follow a system call "
		  "instruction" },
		{ .name = "return's value",
		  { SET("transfer", MARKER(1, 0x403107)) },
		  "marker 1 does not carry the pc after the system call, 0x403109, but 0x403107" },
		{ .name = "two signals at once",
		  { PUT("time 3", MARKER(0, 0x403000)), PUT("time 3", CODE(2, 0x050f)),
		    PUT("time 3", REC(10, 2, 0x404000)), PUT("time 3", MARKER(1, 0x404002)) },
		  NULL },
		{ .name = "two signals, returns in the wrong order",
		  { PUT("time 3", MARKER(0, 0x403001)), PUT("time 3", CODE(2, 0x050f)),
		    PUT("time 3", REC(10, 2, 0x404000)), PUT("time 3", MARKER(1, 0x404002)) },
		  "resumes at 0x403000, but the signal (marker 0) interrupted 0x403001" },
		{ .name = "signal where the return lands",
		  { PUT("jump code", MARKER(0, 0x401023)), PUT("jump code", REC(10, 7, 0x403100)),
		    PUT("jump code", REC(10, 2, 0x403107)), PUT("jump code", MARKER(1, 0x403109)) },
		  NULL },
		{ .name = "signal elsewhere than where the return lands",
		  { PUT("jump code", MARKER(0, 0x401024)), PUT("jump code", REC(10, 7, 0x403100)),
		    PUT("jump code", REC(10, 2, 0x403107)), PUT("jump code", MARKER(1, 0x403109)) },
		  "resumes at 0x401024, but the signal (marker 0) interrupted 0x401023",
		  2 },
		{ .name = "system call restarted in a handler",
		  { PUT("time 3", CODE(2, 0x050f)), PUT("time 3", REC(10, 2, 0x402ffe)),
		    PUT("time 3", MARKER(1, 0x403000)), PUT("time 3", REC(10, 2, 0x402ffe)) },
		  NULL },
		{ .name = "execve in a handler",
		  { SET("restorer code", CODE(7, 0x3bc0c748)), PUT("jump code", CODE(1, 0x90)),
		    PUT("jump code", REC(10, 1, 0x409000)), PUT("jump code", MARKER(14, 1)),
		    SET("window", MARKER(14, 2)), SET("same window", MARKER(14, 2)) },
		  NULL },
		{ .name = "a gap closes signals",
		  { PUT("restorer code", MARKER(14, 1)), PUT("jump code", CODE(1, 0x90)),
		    PUT("jump code", REC(10, 1, 0x401022)), SET("window", MARKER(14, 2)),
		    SET("same window", MARKER(14, 2)) },
		  NULL },
		{ .name = "number alone",
		  { PUT("same window", MARKER(40, 10)) },
		  "marker 40 (signal number) comes right after marker 0" },
		{ .name = "number first",
		  { DEL("number"), PUT("signal", MARKER(40, 10)) },
		  "marker 40 (signal number) comes right after marker 0" },
		{ .name = "no number", { DEL("number") }, NULL },
		{ .name = "signal 65", { SET("number", MARKER(40, 65)) }, "65 is no signal" },
	};

	(void)state;
	run_rows(rows, ARRAY_LEN(rows));
}

static void times(void **state)
{
	static const struct spoil rows[] = {
		{ .name = "goes back", { SET("time 2", MARKER(2, TIME - 1)) }, "time goes back" },
		{ .name = "stands still", { SET("time 2", MARKER(2, TIME)) }, NULL },
		{ .name = "UNIX time",
		  { SET("time", MARKER(2, 1700000000000000u)) },
		  "1700000000000000 is no time in microseconds since 1601" },
		{ .name = "nanoseconds",
		  { SET("time 3", MARKER(2, TIME * 1000)) },
		  "is no time in microseconds since 1601" },
		{ .name = "no cpu",
		  { DEL("cpu 2") },
		  "a timestamp (marker 2) is directly followed by its cpu (marker 3)" },
		{ .name = "no timestamp",
		  { DEL("time 2") },
		  "a cpu (marker 3) comes right after a timestamp (marker 2)" },
		{ .name = "after a branch",
		  { PUT("rep code", MARKER(2, TIME)), PUT("rep code", MARKER(3, 0)) },
		  "a timestamp stands between the branch at 0x401016 and its successor" },
		{ .name = "after a conditional jump",
		  { PUT("call code", MARKER(2, TIME)), PUT("call code", MARKER(3, 0)) },
		  "a timestamp stands between the branch at 0x401013 and its successor" },
		{ .name = "after a branch and a signal",
		  { PUT("ijump code", MARKER(0, 0x40101b)), PUT("ijump code", MARKER(2, TIME)),
		    PUT("ijump code", MARKER(3, 0)), PUT("ijump code", CODE(2, 0x050f)),
		    PUT("ijump code", REC(10, 2, 0x404000)),
		    PUT("ijump code", MARKER(1, 0x404002)) },
		  NULL },
		{ .name = "before a gap",
		  { PUT("window", MARKER(2, TIME + 30)), PUT("window", MARKER(3, 0)) },
		  NULL },
		{ .name = "after a gap",
		  { PUT("elsewhere code", MARKER(2, TIME + 30)),
		    PUT("elsewhere code", MARKER(3, 0)) },
		  "a timestamp next to a marker 14 (window) comes before it" },
	};

	(void)state;
	run_rows(rows, ARRAY_LEN(rows));
}

static void functions(void **state)
{
	static const struct spoil rows[] = {
		{ .name = "entry",
		  { PUT("rep code", MARKER(4, 1)), PUT("rep code", MARKER(5, 0x40101b)),
		    PUT("rep code", MARKER(6, 1)), PUT("rep code", MARKER(6, 2)) },
		  NULL },
		{ .name = "exit",
		  { PUT("ijump code", MARKER(4, 1)), PUT("ijump code", MARKER(7, 0)) },
		  NULL },
		{ .name = "not after a branch",
		  { PUT("long code", MARKER(4, 1)) },
		  "marker 4 (function) comes right after the branch that enters or leaves" },
		{ .name = "another return address",
		  { PUT("rep code", MARKER(4, 1)), PUT("rep code", MARKER(5, 0x40101c)) },
		  "marker 5 says that the call at 0x401016 returns to 0x40101c" },
		{ .name = "return address alone",
		  { PUT("rep code", MARKER(5, 0x40101b)) },
		  "marker 5 (return address) comes right after marker 4" },
		{ .name = "argument alone",
		  { PUT("rep code", MARKER(6, 1)) },
		  "marker 6 (argument) comes right after marker 5 or another argument" },
		{ .name = "value alone",
		  { PUT("ijump code", MARKER(7, 1)) },
		  "marker 7 (return value) comes right after marker 4" },
		{ .name = "failed system call alone",
		  { PUT("again 2", MARKER(30, 2)) },
		  "marker 30 (system call failed) comes right after marker 7" },
		{ .name = "failed system call",
		  { PUT("again 2", MARKER(4, 0x100000002)), PUT("again 2", MARKER(7, 0)),
		    PUT("again 2", MARKER(30, 2)) },
		  NULL },
	};

	(void)state;
	run_rows(rows, ARRAY_LEN(rows));
}

/* Every type and every marker once more where nothing permits it; those that may come are known. */
static void kinds(void **state)
{
	static const struct {
		uint16_t from, to;
		const char *text;
	} types[] = {
		{ 0, 1, "a data access has no place" }, { 2, 9, "a software prefetch" },
		{ 17, 17, "an instruction bundle" },	{ 18, 21, "a cache flush" },
		{ 27, 27, "a hardware prefetch" },	{ 29, 29, "a no-fetch instruction" },
		{ 30, 30, "a maybe-fetch" },		{ 32, 46, "a software prefetch" },
		{ 50, 60, "no such record type" },	{ 65535, 65535, "no such record type" },
	}, markers[] = {
		{ 8, 8, "it belongs to raw traces" },
		{ 9, 10, "it belongs to the header" },
		{ 11, 11, "it belongs to filtered traces" },
		{ 12, 12, "it belongs to the header" },
		{ 15, 17, "it belongs to data addresses" },
		{ 18, 18, "it belongs to the header" },
		{ 19, 19, "it belongs to raw traces" },
		{ 20, 20, "it belongs to the header" },
		{ 21, 22, "it belongs to the chunks of zip files" },
		{ 23, 23, "filter end points" },
		{ 25, 25, "system call numbers are unknown (no 0x400)" },
		{ 26, 26, "no blocking information (no 0x800)" },
		{ 27, 28, "kernel code has no place in a user-only trace" },
		{ 32, 35, "it belongs to core-sharded traces" },
		{ 36, 36, "x86 has no vector length" },
		{ 42, 42, "it belongs to raw traces" },
		{ 43, 44, "hardware events belong to whole-system traces" },
		{ 45, 45, "it belongs to raw traces" },
		{ 46, 46, "it belongs to data addresses" },
		{ 47, 100, "its number is reserved" },
		/* may come: */
		{ 13, 13, NULL }, { 24, 24, NULL }, { 31, 31, NULL }, { 37, 39, NULL },
		{ 41, 41, NULL }, { 101, 300, NULL }, { 65535, 65535, NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(types); i++) {
		for (unsigned t = types[i].from; t <= types[i].to; t++) {
			const struct spoil row = { .name = "type",
						   { PUT("user", REC((uint16_t)t, 1, 5)) },
						   types[i].text };
			run_rows(&row, 1);
		}
	}
	for (size_t i = 0; i < ARRAY_LEN(markers); i++) {
		for (unsigned k = markers[i].from; k <= markers[i].to; k++) {
			const struct spoil row = { .name = "marker",
						   { PUT("user", MARKER((uint16_t)k, 5)) },
						   markers[i].text };
			run_rows(&row, 1);
		}
	}
}

static void classes(void **state)
{
	static const struct {
		const char *bytes;
		size_t size;
		enum code_class class;
		int32_t link;
	} rows[] = {
		{ "\xe3\x05", 2, CODE_JUMP_COND, 5 }, /* jrcxz */
		{ "\x67\xe3\xfb", 3, CODE_JUMP_COND, -5 },
		{ "\xe2\xfe", 2, CODE_JUMP_COND, -2 }, /* loop */
		{ "\xe0\x01", 2, CODE_JUMP_COND, 1 },
		{ "\x0f\x8f\x00\x00\x00\x80", 6, CODE_JUMP_COND, INT32_MIN },
		{ "\xe9\xff\xff\xff\x7f", 5, CODE_JUMP, INT32_MAX },
		{ "\xff\x25\x00\x00\x00\x00", 6, CODE_JUMP_INDIRECT, 0 },
		{ "\xff\x28", 2, CODE_JUMP_INDIRECT, 0 },        /* far */
		{ "\x3e\xff\xe0", 3, CODE_JUMP_INDIRECT, 0 },    /* notrack */
		{ "\x48\xff\x18", 3, CODE_CALL_INDIRECT, 0 },    /* far */
		{ "\xf2\xe8\x00\x00\x00\x00", 6, CODE_CALL, 0 }, /* bnd */
		{ "\xc2\x08\x00", 3, CODE_RETURN, 0 },
		{ "\xf3\xc3", 2, CODE_RETURN, 0 },            /* rep ret */
		{ "\xcb", 1, CODE_RETURN, 0 },                /* retf */
		{ "\x48\xcf", 2, CODE_RETURN, 0 },            /* iretq */
		{ "\x48\x0f\x07", 3, CODE_JUMP_INDIRECT, 0 }, /* sysret */
		{ "\x0f\x35", 2, CODE_JUMP_INDIRECT, 0 },     /* sysexit */
		{ "\x0f\x05", 2, CODE_SYSCALL, 0 },
		{ "\x0f\x34", 2, CODE_SYSENTER, 0 },
		{ "\xcd\x80", 2, CODE_INT80, 0 },
		{ "\xcd\x03", 2, CODE_PLAIN, 0 },
		{ "\xcc", 1, CODE_PLAIN, 0 },
		{ "\xf4", 1, CODE_PLAIN, 0 },                     /* hlt */
		{ "\xc7\xf8\x00\x00\x00\x00", 6, CODE_PLAIN, 0 }, /* xbegin */
		{ "\xf3\xa4", 2, CODE_REP, 0 },
		{ "\xf2\xae", 2, CODE_REP, 0 },
		{ "\xf3\x90", 2, CODE_PLAIN, 0 }, /* pause */
		{ "\xb8\x0f\x00\x00\x00", 5, CODE_LOAD_EAX, 15 },
		{ "\x48\xc7\xc0\x3b\x00\x00\x00", 7, CODE_LOAD_EAX, 59 },
		{ "\x31\xc0", 2, CODE_LOAD_EAX, 0 },
		{ "\xb9\x0f\x00\x00\x00", 5, CODE_PLAIN, 0 },     /* ecx */
		{ "\x41\xb8\x0f\x00\x00\x00", 6, CODE_PLAIN, 0 }, /* r8d */
		{ "\x66\xb8\x0f\x00", 4, CODE_PLAIN, 0 },         /* ax */
		{ "\x0f", 1, CODE_UNKNOWN, 0 },
	};
	struct codes codes;

	(void)state;
	assert_int_equal(codes_init(&codes), 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct code code;

		print_message("  row %zu\n", i);
		codes_decode(&codes, 0x1000, (const uint8_t *)rows[i].bytes, rows[i].size, &code);
		assert_int_equal(code.class, rows[i].class);
		assert_int_equal(code.size, rows[i].size);
		assert_int_equal(code.link, rows[i].link);
	}
	codes_deinit(&codes);
}

static void many_codes(void **state)
{
	struct codes codes;

	(void)state;
	assert_int_equal(codes_init(&codes), 0);
	for (uint64_t i = 0; i < 100000; i++) {
		const struct code code = { .pc = i * 4096,
					   .size = (uint8_t)i,
					   .class = CODE_PLAIN };

		assert_int_equal(codes_put(&codes, code), 0);
	}
	assert_int_equal(codes.n_used, 100000);
	for (uint64_t i = 0; i < 100000; i++) {
		assert_non_null(codes_get(&codes, i * 4096));
		assert_int_equal(codes_get(&codes, i * 4096)->size, (uint8_t)i);
		assert_null(codes_get(&codes, i * 4096 + 1));
	}
	codes_deinit(&codes);
}

/* Counts; bytes that are cut off; and every byte made another must be survived. */
static void whole_files(void **state)
{
	_cleanup_(freep) uint8_t *bytes = NULL;
	struct memtrace_file file;
	uint64_t n_faults;
	char *text;
	size_t size;

	(void)state;
	bytes = build(NULL, &size);
	free(judge(bytes, size, &n_faults, &file));
	assert_int_equal(file.pid, 1000);
	assert_int_equal(file.tid, 1001);
	assert_int_equal(file.file_type, 0x344);
	assert_int_equal(file.first_time, TIME);
	assert_int_equal(file.n_records, ARRAY_LEN(base));
	assert_int_equal(file.n_insns, 22);
	assert_int_equal(file.n_windows, 2);
	assert_int_equal(file.n_markers[2], 3);
	assert_int_equal(file.n_markers[9], 1);
	assert_int_equal(file.n_markers[29], 4);
	assert_int_equal(file.n_markers[101], 1);

	for (size_t cut = 0; cut < size; cut++) {
		text = judge(bytes, cut, &n_faults, &file);
		assert_true(n_faults > 0);
		if (cut % RECORD_SIZE)
			assert_non_null(strstr(text, "are left at the end, but a record has 12"));
		if (cut < RECORD_SIZE)
			assert_non_null(strstr(text, "not a trace: it is empty"));
		if (cut == 12 * 8)
			assert_non_null(strstr(text, "there is no timestamp with a cpu"));
		free(text);
	}
	for (size_t i = 0; i < size * 8; i++) {
		bytes[i / 8] ^= (uint8_t)(1 << i % 8);
		free(judge(bytes, size, &n_faults, &file));
		bytes[i / 8] ^= (uint8_t)(1 << i % 8);
	}
}

static void many_faults(void **state)
{
	_cleanup_(freep) uint8_t *bytes = calloc(10000, RECORD_SIZE);
	_cleanup_(freep) char *text = NULL;
	struct memtrace_file file;
	uint64_t n_faults;

	(void)state;
	assert_non_null(bytes);
	bytes[0] = RECORD_HEADER;
	text = judge(bytes, 10000 * RECORD_SIZE, &n_faults, &file);
	assert_true(n_faults > 9999);
	assert_non_null(strstr(text, "T: further faults are only counted"));
	assert_true(strlen(text) < (MEMTRACE_FAULTS_MAX + 1) * 200);
}

static void deep_signals(void **state)
{
	static const struct record around[] = { CODE(2, 0x050f), REC(10, 2, 0x404000) };
	_cleanup_(freep) uint8_t *bytes = NULL;
	VEC(struct record) records = {};
	struct memtrace_file file;
	uint64_t n_faults;
	char *text;

	(void)state;
	/* 100 signals, each interrupting the handler of the one before at its first instruction. */
	for (size_t i = 0; i < 10; i++)
		assert_int_equal(vec_push(&records, base[i].rec), 0);
	for (uint64_t i = 0; i < 100; i++)
		assert_int_equal(vec_push(&records, MARKER(0, 0x500000 + 2 * i)), 0);
	for (size_t i = 0; i < ARRAY_LEN(around); i++)
		assert_int_equal(vec_push(&records, around[i]), 0);
	assert_int_equal(vec_push(&records, MARKER(1, 0x404002)), 0);
	for (uint64_t i = 100; i-- > 0;) {
		assert_int_equal(vec_push(&records, around[0]), 0);
		assert_int_equal(vec_push(&records, REC(10, 2, 0x500000 + 2 * i)), 0);
		assert_int_equal(vec_push(&records, MARKER(1, 0x500002 + 2 * i)), 0);
	}
	assert_int_equal(vec_push(&records, base[ARRAY_LEN(base) - 2].rec), 0);
	assert_int_equal(vec_push(&records, base[ARRAY_LEN(base) - 1].rec), 0);

	bytes = malloc(records.n * RECORD_SIZE);
	assert_non_null(bytes);
	for (size_t i = 0; i < records.n; i++) {
		memcpy(bytes + i * RECORD_SIZE, &records.items[i].type, 2);
		memcpy(bytes + i * RECORD_SIZE + 2, &records.items[i].size, 2);
		memcpy(bytes + i * RECORD_SIZE + 4, &records.items[i].addr, 8);
	}
	text = judge(bytes, records.n * RECORD_SIZE, &n_faults, &file);
	assert_string_equal(text, "");
	free(text);
	vec_deinit(&records);
}

/* --- system calls with numbers, and the kernel's part of them --------------------------------- */

static const struct labelled calls[] = {
	{ NULL, REC(25, 0, 7) },
	{ NULL, MARKER(12, 7) },
	{ "type", MARKER(9, 0x8744) },
	{ NULL, REC(22, 4, 1001) },
	{ NULL, REC(24, 4, 1000) },
	{ NULL, MARKER(10, 64) },
	{ NULL, MARKER(18, 4096) },
	{ NULL, MARKER(2, TIME) },
	{ NULL, MARKER(3, 1) },
	{ NULL, CODE(2, 0x050f) },
	{ "syscall", REC(10, 2, 0x401000) },
	{ "time", MARKER(2, TIME + 1) },
	{ "cpu", MARKER(3, 1) },
	{ "number", MARKER(25, 39) },
	{ "start", MARKER(27, 39) },
	{ "entry code", CODE(1, 0x90) },
	{ "entry", REC(10, 1, 0xffffffff81000000) },
	{ "sysret code", CODE(3, 0x070f48) }, /* sysretq */
	{ "target", MARKER(29, 0x401002) },
	{ "sysret", REC(12, 3, 0xffffffff81000001) },
	{ "end", MARKER(28, 39) },
	{ "time 2", MARKER(2, TIME + 2) },
	{ "cpu 2", MARKER(3, 1) },
	{ "behind code", CODE(1, 0x90) },
	{ "behind", REC(10, 1, 0x401002) },
	{ "exit", REC(23, 4, 1001) },
	{ NULL, REC(26, 0, 0) },
};

static void system_calls(void **state)
{
	static const struct spoil rows[] = {
		{ .name = "as it should be", {}, NULL },
		{ .name = "no kernel part",
		  { DEL("start"), DEL("entry code"), DEL("entry"), DEL("sysret code"),
		    DEL("target"), DEL("sysret"), DEL("end") },
		  NULL },
		{ .name = "no number",
		  { DEL("number"), DEL("start"), DEL("entry code"), DEL("entry"),
		    DEL("sysret code"), DEL("target"), DEL("sysret"), DEL("end") },
		  "the system call at 0x401000 is not followed by a timestamp, a cpu and marker "
		  "25" },
		{ .name = "no pair before the number",
		  { DEL("time"), DEL("cpu") },
		  "marker 25 (system call) comes right after a timestamp and a cpu" },
		{
		    .name = "a number of no call",
		    { PUT("exit", MARKER(25, 1)) },
		    "marker 25 (system call) does not follow a system call",
		},
		{ .name = "numbers are not known",
		  { SET("type", MARKER(9, 0x8344)), DEL("number"),
		    SET("start", MARKER(27, UINT64_MAX)), SET("end", MARKER(28, UINT64_MAX)) },
		  NULL },
		{ .name = "numbers are not known, but one is given",
		  { SET("type", MARKER(9, 0x8344)), DEL("number") },
		  "marker 27 (kernel part) is 0x27, not 0xffffffffffffffff" },
		{ .name = "another number",
		  { SET("start", MARKER(27, 40)), SET("end", MARKER(28, 40)) },
		  "marker 27 (kernel part) is 0x28, not 0x27" },
		{ .name = "another number at the end",
		  { SET("end", MARKER(28, 40)) },
		  "marker 28 (end of a kernel part) is 0x28, but its marker 27 0x27" },
		{ .name = "a part in a part",
		  { PUT("entry code", MARKER(27, 39)) },
		  "kernel parts (marker 27) do not nest" },
		{ .name = "two parts of one call",
		  { PUT("time 2", MARKER(27, 39)), PUT("time 2", MARKER(28, 39)) },
		  "marker 27 (kernel part) does not follow a system call" },
		{ .name = "an end without a beginning",
		  { PUT("exit", MARKER(28, 39)) },
		  "marker 28 (end of a kernel part) has no marker 27" },
		{ .name = "a part behind the second pair",
		  { PUT("start", MARKER(2, TIME + 1)), PUT("start", MARKER(3, 1)) },
		  "marker 27 (kernel part) does not follow a system call" },
		{ .name = "the kernel's code outside",
		  { DEL("end") },
		  "0x401002 is no address of the kernel's code, whose part is not over",
		  2 },
		{ .name = "the kernel's code before the part",
		  { DEL("start"), DEL("end") },
		  "0xffffffff81000000 is no address of user code",
		  4 },
		{ .name = "goes on elsewhere",
		  { SET("behind", REC(10, 1, 0x401005)) },
		  "the system call at 0x401000 lands elsewhere than behind itself" },
		{ .name = "goes on elsewhere, marked",
		  { SET("behind", REC(10, 1, 0x401005)), PUT("behind code", MARKER(1, 0x401002)) },
		  NULL },
		{ .name = "with data: no branch at the end",
		  { SET("type", MARKER(9, 0x1640)), SET("sysret code", CODE(1, 0x90)),
		    DEL("target"), SET("sysret", REC(10, 1, 0xffffffff81000001)) },
		  "a kernel part ends with an indirect branch" },
		{ .name = "maybe blocking, without that bit",
		  { PUT("start", MARKER(26, 0)) },
		  "the file type has no blocking information (no 0x800)" },
		{ .name = "maybe blocking",
		  { SET("type", MARKER(9, 0x8f44)), PUT("start", MARKER(26, 0)) },
		  NULL },
		{ .name = "maybe blocking, at another place",
		  { SET("type", MARKER(9, 0x8f44)), PUT("exit", MARKER(26, 0)) },
		  "marker 26 (maybe blocking) comes right after marker 25" },
		{ .name = "an access of no instruction",
		  { SET("type", MARKER(9, 0x8740)), PUT("exit", MARKER(101, 1)),
		    PUT("exit", REC(0, 8, 0x7fff0000)) },
		  "type 0 does not follow the instruction that it belongs to" },
		{ .name = "an access",
		  { SET("type", MARKER(9, 0x8740)), PUT("exit", REC(0, 8, 0x7fff0000)) },
		  NULL },
	};

	(void)state;
	records_of = calls;
	n_records_of = ARRAY_LEN(calls);
	run_rows(rows, ARRAY_LEN(rows));
}

/* --- whole systems ------------------------------------------------------------------ */

static const struct labelled whole[] = {
	{ NULL, REC(25, 0, 7) },
	{ NULL, MARKER(12, 7) },
	{ NULL, MARKER(9, 0x40344) },
	{ NULL, REC(22, 4, 1001) },
	{ NULL, REC(24, 4, 1000) },
	{ NULL, MARKER(10, 64) },
	{ NULL, MARKER(18, 4096) },
	{ NULL, MARKER(2, TIME) },
	{ NULL, MARKER(3, 1) },
	{ NULL, CODE(1, 0x90) },
	{ "user", REC(10, 1, 0x401000) },
	{ "event", MARKER(43, 0x401001) },
	{ NULL, CODE(1, 0x90) },
	{ "entry", REC(10, 1, 0xffffffff81000000) },
	{ "nested", MARKER(43, 0xffffffff81000001) },
	{ "nested code", CODE(2, 0xcf48) },
	{ "nested target", MARKER(29, 0xffffffff81000001) },
	{ "nested iret", REC(16, 2, 0xffffffff81000200) },
	{ "nested return", MARKER(44, 0xffffffff81000200) },
	{ "second code", CODE(2, 0xcf48) },
	{ "target", MARKER(29, 0x401001) },
	{ "iret", REC(16, 2, 0xffffffff81000001) },
	{ "return", MARKER(44, 0xffffffff81000001) },
	{ "behind code", CODE(1, 0x90) },
	{ "behind", REC(10, 1, 0x401001) },
	{ "exit", REC(23, 4, 1001) },
	{ NULL, REC(26, 0, 0) },
};

static void whole_systems(void **state)
{
	static const struct spoil rows[] = {
		{ .name = "as it should be", {}, NULL },
		{ .name = "another pc was interrupted",
		  { SET("event", MARKER(43, 0x401002)), SET("target", MARKER(29, 0x401002)),
		    SET("behind", REC(10, 1, 0x401002)) },
		  "after the instruction at 0x401000 comes 0x401001, but the interrupted pc is "
		  "0x401002" },
		{ .name = "no pc",
		  { SET("event", MARKER(43, 0)) },
		  "marker 43 (hardware event) does not carry the interrupted pc",
		  3 },
		{ .name = "goes on elsewhere",
		  { SET("behind", REC(10, 1, 0x401003)) },
		  "(marker 44) resumes at 0x401003, but the event (marker 43) interrupted "
		  "0x401001" },
		{ .name = "the branch leads elsewhere",
		  { SET("target", MARKER(29, 0x401002)) },
		  "goes to 0x401002, but the event (marker 43) interrupted 0x401001" },
		{ .name = "goes on elsewhere, marked",
		  { SET("target", MARKER(29, 0x403000)), SET("behind", REC(10, 1, 0x403000)),
		    PUT("behind code", MARKER(1, 0x401001)) },
		  NULL },
		{ .name = "goes on elsewhere than the branch, marked",
		  { SET("target", MARKER(29, 0x403000)), SET("behind", REC(10, 1, 0x403001)),
		    PUT("behind code", MARKER(1, 0x401001)) },
		  "the branch before markers 44 and 1 goes to 0x403000, but the next instruction "
		  "is 0x403001" },
		{ .name = "goes on elsewhere, marked with another pc",
		  { SET("target", MARKER(29, 0x403000)), SET("behind", REC(10, 1, 0x403000)),
		    PUT("behind code", MARKER(1, 0x401002)) },
		  "marker 1 behind marker 44 does not carry the pc that the event (marker 43) "
		  "interrupted, 0x401001, but 0x401002" },
		{ .name = "both return at once",
		  { DEL("nested return"), SET("nested target", MARKER(29, 0x401001)),
		    DEL("second code"), DEL("target"), DEL("iret"),
		    PUT("return", MARKER(44, 0xffffffff81000200)) },
		  NULL },
		{ .name = "both return at once, but the branch leads to the inner one",
		  { DEL("nested return"), DEL("second code"), DEL("target"), DEL("iret"),
		    PUT("return", MARKER(44, 0xffffffff81000200)) },
		  "goes to 0xffffffff81000001, but the event (marker 43) interrupted 0x401001" },
		{ .name = "the thread ends in the kernel",
		  { DEL("behind code"), DEL("behind"), DEL("target"),
		    SET("second code", CODE(2, 0x9066)),
		    SET("iret", REC(10, 2, 0xffffffff81000001)) },
		  NULL },
		{ .name = "no branch before the return",
		  { DEL("nested target"), SET("nested code", CODE(2, 0x9066)),
		    SET("nested iret", REC(10, 2, 0xffffffff81000200)) },
		  "does not follow an indirect branch, but the instruction at 0xffffffff81000200" },
		{ .name = "value 0",
		  { SET("return", MARKER(44, 0)) },
		  "marker 44 (return from a hardware event) is 0" },
		{ .name = "no event",
		  { PUT("exit", MARKER(44, 1)) },
		  "marker 44 (return from a hardware event) has no marker 43" },
		{ .name = "no return",
		  { DEL("return") },
		  "0x401001 is no address of the kernel's code, whose part is not over" },
		{ .name = "a signal",
		  { PUT("exit", MARKER(0, 0x401002)) },
		  "marker 0 (signal) has no place in a whole-system trace" },
		{ .name = "begins in the kernel",
		  { DEL("user") },
		  "an encoding is directly followed by its instruction" },
	};
	struct memtrace_file file;
	VEC(struct record) records = {};
	uint64_t n_faults;
	char *text;

	(void)state;
	records_of = whole;
	n_records_of = ARRAY_LEN(whole);
	run_rows(rows, ARRAY_LEN(rows));

	/* One event too many, each at the beginning of the one before. */
	for (size_t i = 0; i < 9; i++)
		assert_int_equal(vec_push(&records, whole[i].rec), 0);
	for (uint64_t i = 0; i <= MEMTRACE_EVENTS_MAX; i++)
		assert_int_equal(vec_push(&records, MARKER(43, 0xffffffff81000000 + i)), 0);
	assert_int_equal(vec_push(&records, whole[ARRAY_LEN(whole) - 2].rec), 0);
	assert_int_equal(vec_push(&records, whole[ARRAY_LEN(whole) - 1].rec), 0);
	{
		_cleanup_(freep) uint8_t *bytes = malloc(records.n * RECORD_SIZE);

		assert_non_null(bytes);
		for (size_t i = 0; i < records.n; i++) {
			memcpy(bytes + i * RECORD_SIZE, &records.items[i].type, 2);
			memcpy(bytes + i * RECORD_SIZE + 2, &records.items[i].size, 2);
			memcpy(bytes + i * RECORD_SIZE + 4, &records.items[i].addr, 8);
		}
		text = judge(bytes, records.n * RECORD_SIZE, &n_faults, &file);
	}
	assert_non_null(strstr(text, "hardware events (marker 43) nest deeper than 29"));
	assert_int_equal(n_faults, 1);
	free(text);
	vec_deinit(&records);
}

/* --- a file for each core --------------------------------------------------------------------- */

static const struct labelled cores[] = {
	{ NULL, REC(25, 0, 7) },
	{ NULL, MARKER(12, 7) },
	{ "type", MARKER(9, 0x50344) },
	{ NULL, REC(22, 4, 1001) },
	{ NULL, REC(24, 4, 1000) },
	{ NULL, MARKER(10, 64) },
	{ NULL, MARKER(18, 4096) },
	{ NULL, MARKER(2, TIME) },
	{ NULL, MARKER(3, 1) },
	{ NULL, CODE(2, 0x10eb) },
	{ "jump", REC(11, 2, 0x401000) }, /* to 0x401012, where the thread does not come any more */
	{ "event", MARKER(43, 0x401012) },
	{ NULL, CODE(1, 0x90) },
	{ "entry", REC(10, 1, 0xffffffff81000000) },
	{ "thread 2", REC(22, 4, 2002) },
	{ "pid 2", REC(24, 4, 2000) },
	{ "time 2", MARKER(2, TIME + 1) },
	{ "cpu 2", MARKER(3, 1) },
	{ "code 2", CODE(1, 0x90) },
	{ "other", REC(10, 1, 0x501000) },
	{ "thread 3", REC(22, 4, 1001) },
	{ "pid 3", REC(24, 4, 1000) },
	{ "time 3", MARKER(2, TIME + 2) },
	{ "cpu 3", MARKER(3, 1) },
	{ "code 3", CODE(1, 0x90) },
	{ "third", REC(10, 1, 0x601000) },
	{ "idle", MARKER(33, 0) },
	{ "exit", REC(23, 4, 1001) },
	{ NULL, REC(26, 0, 0) },
};

static void core_sharded(void **state)
{
	static const struct spoil rows[] = {
		{ .name = "as it should be", {}, NULL },
		{ .name = "one thread in each file",
		  { SET("type", MARKER(9, 0x40344)), DEL("idle") },
		  "a second thread or pid (type 22), but a file holds one thread",
		  8 },
		{ .name = "no exit", { DEL("exit") }, NULL },
		{ .name = "a footer where a thread ends",
		  { PUT("thread 3", REC(23, 4, 2002)), PUT("thread 3", REC(26, 0, 0)) },
		  NULL },
		{ .name = "a header where a thread begins",
		  { PUT("thread 3", REC(25, 0, 7)), PUT("thread 3", MARKER(12, 7)),
		    PUT("thread 3", MARKER(9, 0x50344)), PUT("time 3", MARKER(10, 64)),
		    PUT("time 3", MARKER(18, 4096)) },
		  NULL },
		{ .name = "a header without its page size where a thread begins",
		  { PUT("thread 3", REC(25, 0, 7)), PUT("thread 3", MARKER(12, 7)),
		    PUT("thread 3", MARKER(9, 0x50344)), PUT("time 3", MARKER(10, 64)) },
		  "the page size (marker 18) is missing here" },
		{ .name = "marker 29 before the encoding",
		  { SET("code 2", CODE(2, 0xe0ff)), PUT("code 2", MARKER(29, 0x601000)),
		    SET("other", REC(12, 2, 0x501000)) },
		  NULL },
		{ .name = "a thread without its pid",
		  { DEL("pid 2") },
		  "a thread (type 22) is directly followed by its pid (type 24)" },
		{ .name = "a pid without its thread",
		  { DEL("thread 2") },
		  "a pid (type 24) comes right after its thread (type 22)",
		  3 },
		{ .name = "the exit of another thread than the last",
		  { SET("exit", REC(23, 4, 2002)) },
		  "thread 2002 exits in the file of thread 1001" },
		{ .name = "a return from an event of the thread before",
		  { PUT("code 2", MARKER(44, 0xffffffff81000000)) },
		  "marker 44 (return from a hardware event) has no marker 43" },
		{ .name = "time goes back, though for another thread",
		  { SET("time 2", MARKER(2, TIME - 1)) },
		  "time goes back" },
		{ .name = "a flow that breaks without a switch",
		  { DEL("thread 3"), DEL("pid 3"), SET("exit", REC(23, 4, 2002)) },
		  "after the instruction at 0x501000 comes 0x501001, but the next instruction is "
		  "0x601000" },
		{ .name = "idle cores in a file of a thread",
		  { SET("type", MARKER(9, 0x40344)), DEL("thread 2"), DEL("pid 2"), DEL("thread 3"),
		    DEL("pid 3"), DEL("other"), DEL("code 2"),
		    SET("third", REC(10, 1, 0xffffffff81000001)) },
		  "marker 33 is not allowed here: it belongs to core-sharded traces" },
	};

	(void)state;
	records_of = cores;
	n_records_of = ARRAY_LEN(cores);
	run_rows(rows, ARRAY_LEN(rows));
}

static int back_to_base(void **state)
{
	(void)state;
	records_of = base;
	n_records_of = ARRAY_LEN(base);
	return 0;
}

static void expect_dir(const char *dir, const char *expected);

/* --- chunks ---------------------------------------------------------------------------------*/

#define NEXT_COMPONENT 0xfffe

static const struct labelled chunks[] = {
	{ NULL, REC(25, 0, 7) },
	{ NULL, MARKER(12, 7) },
	{ NULL, MARKER(9, 0x344) },
	{ NULL, REC(22, 4, 1001) },
	{ NULL, REC(24, 4, 1000) },
	{ NULL, MARKER(10, 64) },
	{ "chunk", MARKER(20, 2) },
	{ NULL, MARKER(18, 4096) },
	{ NULL, MARKER(2, TIME) },
	{ NULL, MARKER(3, 1) },
	{ NULL, CODE(1, 0x90) },
	{ "first", REC(10, 1, 0x401000) },
	{ NULL, CODE(2, 0xfdeb) },
	{ "jump", REC(11, 2, 0x401001) },
	{ "footer 0", MARKER(21, 0) },
	{ "next 1", REC(NEXT_COMPONENT, 0, 0) },
	{ "ordinal", MARKER(22, 10) },
	{ "time", MARKER(2, TIME) },
	{ "cpu", MARKER(3, 1) },
	{ "code again", CODE(1, 0x90) },
	{ "again", REC(10, 1, 0x401000) },
	{ NULL, CODE(2, 0xfdeb) },
	{ "jump again", REC(11, 2, 0x401001) },
	{ "footer 1", MARKER(21, 1) },
	{ "next 2", REC(NEXT_COMPONENT, 0, 0) },
	{ "ordinal 2", MARKER(22, 13) },
	{ NULL, MARKER(2, TIME) },
	{ NULL, MARKER(3, 1) },
	{ NULL, CODE(1, 0x90) },
	{ "last", REC(10, 1, 0x401000) },
	{ "exit", REC(23, 4, 1001) },
	{ NULL, REC(26, 0, 0) },
};

/* Add a component to a zip file. */
static void add_component(zipFile zip, const void *bytes, size_t size)
{
	assert_non_null(zip);
	assert_int_equal(
	    zipOpenNewFileInZip64(zip, "chunk", NULL, NULL, 0, NULL, 0, NULL, Z_DEFLATED, 1, 1),
	    ZIP_OK);
	assert_int_equal(zipWriteInFileInZip(zip, bytes, (unsigned int)size), ZIP_OK);
	assert_int_equal(zipCloseFileInZip(zip), ZIP_OK);
}

/* Write the records as a zip file, cut where a record says so. */
static void write_zip(const char *path, const uint8_t *bytes, size_t size)
{
	zipFile zip = zipOpen64(path, APPEND_STATUS_CREATE);
	size_t end;

	for (size_t at = 0; at < size; at = end + RECORD_SIZE) {
		for (end = at; end < size && record_read(bytes + end).type != NEXT_COMPONENT;)
			end += RECORD_SIZE;
		add_component(zip, bytes + at, end - at);
	}
	assert_int_equal(zipClose(zip, NULL), ZIP_OK);
}

/* The spoiled trace, as a zip file in @dir, has the row's faults. */
static void expect_zip(const char *dir, const struct spoil *row)
{
	_cleanup_(freep) uint8_t *bytes = NULL;
	_cleanup_(freep) char *text = NULL;
	char path[TEMPDIR_SIZE + 16];
	struct memtrace trace = {};
	struct memtrace_file file;
	size_t size;

	(void)snprintf(path, sizeof(path), "%s/x.zip", dir);
	bytes = build(row, &size);
	write_zip(path, bytes, size);
	trace.faults = open_memstream(&text, &size);
	assert_non_null(trace.faults);
	assert_int_equal(memtrace_check_file(&trace, path, &file), 0);
	assert_int_equal(fclose(trace.faults), 0);
	if (!strstr(text, row->text ?: ""))
		fail_msg("expected: %s\ngot: %s", row->text, text);
	if (trace.n_faults != (row->text ? row->n_faults ?: 1 : 0))
		fail_msg("too many or too few faults:\n%s", text);
}

static void zip_chunks(void **state)
{
	static const struct spoil rows[] = {
		{ .name = "as it should be", {}, NULL },
		{ .name = "no footer",
		  { DEL("footer 0"), SET("ordinal", MARKER(22, 9)),
		    SET("ordinal 2", MARKER(22, 12)) },
		  "the component before does not end with marker 21 (footer)" },
		{ .name = "another number",
		  { SET("footer 1", MARKER(21, 2)) },
		  "marker 21 (footer) carries the component's number, 1, not 2" },
		{ .name = "something behind the footer",
		  { PUT("next 1", MARKER(101, 0)), SET("ordinal", MARKER(22, 11)),
		    SET("ordinal 2", MARKER(22, 14)) },
		  "something follows marker 21 (footer) in its component",
		  2 },
		{ .name = "another length",
		  { SET("chunk", MARKER(20, 3)) },
		  "the component before has 2 instructions, but marker 20 states chunks of 3",
		  2 },
		{ .name = "too long",
		  { DEL("footer 1"), DEL("next 2"), DEL("ordinal 2"), PUT("exit", MARKER(101, 0)) },
		  "the component has more than the 2 instructions that marker 20 states",
		  2 },
		{ .name = "another ordinal",
		  { SET("ordinal", MARKER(22, 11)) },
		  "marker 22, the number of records before is 10, not 11" },
		{ .name = "no ordinal",
		  { DEL("ordinal") },
		  "a component has marker 22, the number of records before here",
		  3 },
		{ .name = "another time",
		  { SET("time", MARKER(2, TIME + 1)) },
		  "a copy of the last timestamp is" },
		{ .name = "another cpu",
		  { SET("cpu", MARKER(3, 2)) },
		  "a copy of the last cpu is 1, not 2" },
		{ .name = "no encoding in the second component",
		  { DEL("code again") },
		  "the first instruction at 0x401000 in this component has no encoding" },
		{ .name = "a footer at the end",
		  { PUT("exit", MARKER(21, 2)) },
		  "something follows marker 21 (footer) in its component" },
		{ .name = "control flow is broken where a component begins",
		  { SET("jump", REC(10, 2, 0x401001)) },
		  "a direct jump at 0x401001 has type 11, not 10" },
	};

	records_of = chunks;
	n_records_of = ARRAY_LEN(chunks);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		print_message("  %s\n", rows[i].name);
		expect_zip(*state, &rows[i]);
	}
}

static void zip_without_its_end(void **state)
{
	static const struct spoil row = {
		.text = "the trace is truncated: no footer (type 26) at its end"
	};

	records_of = chunks;
	n_records_of = find(chunks, ARRAY_LEN(chunks), "next 2");
	expect_zip(*state, &row);
}

static void damaged_zip(void **state)
{
	_cleanup_(freep) uint8_t *good = NULL, *zip = NULL;
	const char *dir = *state;
	char path[TEMPDIR_SIZE + 16];
	size_t size;
	FILE *file;

	good = build(NULL, &size);
	(void)snprintf(path, sizeof(path), "%s/x.zip", dir);
	write_zip(path, good, size);
	zip = malloc(size);
	assert_non_null(zip);
	file = fopen(path, "re");
	assert_non_null(file);
	size = fread(zip, 1, size, file);
	assert_int_equal(fclose(file), 0);

	expect_dir(dir, NULL);
	/* In the middle of what is compressed. */
	zip[200] ^= 0xff;
	tempdir_put(dir, "x.zip", zip, size);
	expect_dir(dir, "the compressed bytes are damaged, or end too early");
}

/* --- schedules ------------------------------------------------------------------------------*/

static void put_schedule(const char *dir, const struct schedule_entry *entries, size_t n,
			 const char *name)
{
	tempdir_put(dir, name, entries, n * sizeof(*entries));
}

/* The entries, each in a component of its own, in the order of their digits in @order. */
static void put_cpu_schedule(const char *dir, const struct schedule_entry *entries,
			     const char *order)
{
	char path[TEMPDIR_SIZE + 32];
	zipFile zip;

	(void)snprintf(path, sizeof(path), "%s/cpu_schedule.bin.zip", dir);
	zip = zipOpen64(path, APPEND_STATUS_CREATE);
	for (; *order; order++)
		add_component(zip, &entries[*order - '0'], sizeof(*entries));
	assert_int_equal(zipClose(zip, NULL), ZIP_OK);
}

static void cpu_schedules(void **state)
{
	/* Of a thread that left CPU 0 for CPU 1 and came back, and one that stayed there. */
	static const struct spoil migrates = { .edits = { SET("cpu", MARKER(3, 0)),
							  SET("cpu 2", MARKER(3, 1)) } };
	static const struct spoil stays = {
		.edits = { SET("thread", REC(22, 4, 1002)), SET("exit", REC(23, 4, 1002)),
			   SET("time", MARKER(2, TIME + 5)), SET("cpu", MARKER(3, 0)),
			   SET("cpu 2", MARKER(3, 0)) }
	};
	static const struct schedule_entry good[] = {
		{ 1001, TIME, 0, 0 },       { 1002, TIME + 5, 0, 0 },   { 1001, TIME + 10, 1, 10 },
		{ 1002, TIME + 10, 0, 10 }, { 1001, TIME + 20, 0, 12 }, { 1002, TIME + 20, 0, 12 },
	};
	_cleanup_(freep) uint8_t *first = NULL, *second = NULL;
	const char *dir = *state;
	size_t size;

	first = build(&migrates, &size);
	tempdir_put(dir, "a", first, size);
	second = build(&stays, &size);
	tempdir_put(dir, "b", second, size);
	put_cpu_schedule(dir, good, "013452");
	expect_dir(dir, NULL);
	/* DynamoRIO groups them by the CPUs in them, wherever they stand. */
	put_cpu_schedule(dir, good, "201345");
	expect_dir(dir, NULL);
	put_cpu_schedule(dir, good, "012345");
	expect_dir(dir, NULL);
	/* Entries of a thread that follow each other on a CPU count as their first. */
	put_cpu_schedule(dir, good, "02145");
	expect_dir(dir, NULL);
	put_cpu_schedule(dir, good, "103452");
	expect_dir(dir, "cpu_schedule.bin.zip: entry 0 is thread 1002 at");
	put_cpu_schedule(dir, good, "01345");
	expect_dir(dir, "cpu_schedule.bin.zip: entry 5 is nothing, but the trace has thread 1001");
	put_cpu_schedule(dir, good, "0342");
	expect_dir(dir, "cpu_schedule.bin.zip: entry 1 is thread 1002 at");
	put_cpu_schedule(dir, good, "0134522");
	expect_dir(dir, "cpu_schedule.bin.zip: entry 6 is thread 1001 at");
}

static void schedules(void **state)
{
	/* What the file of base has: at its beginning, and behind some instructions. */
	struct schedule_entry good[] = {
		{ 1001, TIME, 1, 0 },
		{ 1001, TIME + 10, 0, 10 },
		{ 1001, TIME + 20, 0, 12 },
	};
	static const struct schedule_entry many[5] = {};
	_cleanup_(freep) uint8_t *bytes = NULL;
	const char *dir = *state;
	size_t size;

	bytes = build(NULL, &size);
	tempdir_put(dir, "a", bytes, size);
	put_schedule(dir, good, 3, "serial_schedule.bin");
	expect_dir(dir, NULL);
	/* Of one thread, the first is enough. */
	put_schedule(dir, good, 1, "serial_schedule.bin");
	expect_dir(dir, NULL);
	put_schedule(dir, good + 1, 1, "serial_schedule.bin");
	expect_dir(dir, "serial_schedule.bin: entry 0 is thread 1001");
	put_schedule(dir, good, 0, "serial_schedule.bin");
	expect_dir(dir, "serial_schedule.bin: entry 0 is nothing, but the trace has thread 1001");
	put_schedule(dir, many, 5, "serial_schedule.bin");
	expect_dir(dir, "serial_schedule.bin: it has more entries than the trace");
	good[2].n_insns++;
	put_schedule(dir, good, 3, "serial_schedule.bin");
	expect_dir(dir, "serial_schedule.bin: entry 2 is thread 1001 at");
	tempdir_put(dir, "serial_schedule.bin", good, 31);
	expect_dir(dir, "serial_schedule.bin: it is damaged, or no list of entries of 32 bytes");
	tempdir_put(dir, "cpu_schedule.bin.zip", good, 32);
	expect_dir(dir, "cpu_schedule.bin.zip: it is damaged");
}

/* The numbers in markers 4 and 101 are in tables beside the trace. */
static void tables(void **state)
{
	static const struct spoil call = { .edits = { PUT("rep code", MARKER(4, 7)),
						      PUT("rep code", MARKER(5, 0x40101b)) } };
	_cleanup_(freep) uint8_t *bytes = NULL;
	const char *dir = *state;
	size_t size;

	bytes = build(&call, &size);
	tempdir_put(dir, "trace/a", bytes, size);
	tempdir_put_text(dir, "aux/funclist.log", "7,0,0x402000,a!f\n");
	tempdir_put_text(dir, "aux/symbols.tsv", "id\tname\n42\tf\n");
	expect_dir(dir, NULL);
	tempdir_put_text(dir, "aux/funclist.log", "8,0,0x402000,a!f\n");
	expect_dir(dir, "marker 4 names function 7, which funclist.log does not have");
	tempdir_put_text(dir, "aux/funclist.log", "7,0,0x402000,a!f\n7,0,0x402000,a!f\n");
	expect_dir(dir, "aux/funclist.log: line 2 does not begin with a number of its own");
	tempdir_put_text(dir, "aux/funclist.log", "7,0,0x402000,a!f\n");
	tempdir_put_text(dir, "aux/symbols.tsv", "id\tname\n41\tf\n");
	expect_dir(dir, "marker 101 names symbol 42, which symbols.tsv does not have");
	tempdir_put_text(dir, "aux/symbols.tsv", "id\tname\n42\tf\nx\n");
	expect_dir(dir, "aux/symbols.tsv: line 3 does not begin with a number of its own");
}

/* Find, select if @tid, check. Return: the faults' text, the caller frees. */
static char *judge_dir(const char *dir, uint64_t tid, FILE *addresses, int expected)
{
	struct memtrace trace = { .addresses = addresses };
	char *text = NULL, *path = NULL;
	size_t n_text;
	int r;

	trace.faults = open_memstream(&text, &n_text);
	assert_non_null(trace.faults);
	r = memtrace_find(&trace, dir, &path);
	if (r == 0 && tid)
		r = memtrace_select(&trace, 1000, tid, &path);
	if (r == 0)
		r = memtrace_check(&trace, &path);
	assert_int_equal(r, expected);
	free(path);
	memtrace_deinit(&trace);
	assert_int_equal(fclose(trace.faults), 0);
	return text;
}

static void expect_dir(const char *dir, const char *expected)
{
	_cleanup_(freep) char *text = judge_dir(dir, 0, NULL, 0);

	if (expected ? !strstr(text, expected) : *text)
		fail_msg("expected: %s\ngot: %s", expected ? expected : "nothing", text);
}

static int make_dir(void **state)
{
	static char dir[TEMPDIR_SIZE];

	tempdir_make("memtrace", dir);
	*state = dir;
	return 0;
}

static int remove_dir(void **state)
{
	tempdir_remove(*state);
	return 0;
}

static int remove_dir_and_back(void **state)
{
	return remove_dir(state) ?: back_to_base(state);
}

static void directories(void **state)
{
	static const char *const ignored[] = { "modules.log", "funclist.log", "encodings.bin",
					       "v2p.textproto" };
	static const struct spoil other_type = { .edits = { SET("type", MARKER(9, 0x340)) } };
	_cleanup_(freep) uint8_t *good = NULL, *other = NULL;
	const char *dir = *state;
	char path[128], sub[160];
	size_t size;

	good = build(NULL, &size);
	other = build(&other_type, &size);
	free(judge_dir("/nonexistent", 0, NULL, -ENOENT));
	expect_dir(dir, "there is no trace file");

	/* Without trace/ the directory itself is read. */
	tempdir_put(dir, "drmemtrace.x.1.0000.trace", good, size);
	(void)snprintf(path, sizeof(path), "%s/aux", dir);
	assert_int_equal(mkdir(path, 0700), 0);
	expect_dir(dir, NULL);
	tempdir_put(dir, "README", "hello, this is a readme", 23);
	expect_dir(dir, "README: record 0 (byte 0): not a trace: the first record is no header");

	(void)snprintf(path, sizeof(path), "%s/trace", dir);
	assert_int_equal(mkdir(path, 0700), 0);
	expect_dir(dir, "there is no trace file");
	tempdir_put(path, "drmemtrace.x.1.0000.trace", good, size);
	for (size_t i = 0; i < ARRAY_LEN(ignored); i++)
		tempdir_put(path, ignored[i], "x", 1);
	expect_dir(dir, NULL);
	tempdir_put(path, "empty", "", 0);
	expect_dir(dir, "trace/empty: record 0 (byte 0): not a trace: it is empty");
	tempdir_put(path, "empty", good, size);
	expect_dir(dir, NULL);
	tempdir_put(path, "empty", other, size);
	expect_dir(dir, "all files of a trace have the same file type, but 0x340 is not 0x344");
	tempdir_put(path, "empty", good, size);

	(void)snprintf(sub, sizeof(sub), "%s/raw", path);
	assert_int_equal(mkdir(sub, 0700), 0);
	expect_dir(dir, "trace/raw: not a regular file: everything in the trace directory is read");
	assert_int_equal(rmdir(sub), 0);
	tempdir_put(path, "x.trace.zip", good, size);
	expect_dir(dir,
		   "x.trace.zip: record 0 (byte 0): it is not compressed as its suffix states");
}

static void addresses(void **state)
{
	static const struct spoil later = { .edits = { SET("time", MARKER(2, TIME + 5)) } };
	static const struct spoil stranger = { .edits = { SET("thread", REC(22, 4, 7)),
							  SET("exit", REC(23, 4, 7)) } };
	static const struct spoil earlier = { .edits = { SET("time", MARKER(2, TIME - 5)),
							 SET("last", REC(10, 1, 0x406666)) } };
	static const struct schedule_entry schedule = { 7, TIME, 1, 0 };
	_cleanup_(freep) uint8_t *bytes = NULL;
	_cleanup_(freep) char *text = NULL;
	const char *dir = *state;
	uint64_t *pcs = NULL;
	size_t size, n_pcs;
	FILE *out;

	bytes = build(&later, &size);
	tempdir_put(dir, "a", bytes, size);
	free(bytes);
	bytes = build(&stranger, &size);
	tempdir_put(dir, "b", bytes, size);
	free(bytes);
	bytes = build(&earlier, &size);
	tempdir_put(dir, "c", bytes, size);
	/* It is of all threads, so one thread alone does not show that it is wrong. */
	tempdir_put(dir, "serial_schedule.bin", &schedule, sizeof(schedule));

	out = open_memstream((char **)&pcs, &n_pcs);
	assert_non_null(out);
	text = judge_dir(dir, 1001, out, 0);
	assert_int_equal(fclose(out), 0);
	assert_string_equal(text, "");
	assert_int_equal(n_pcs, 2 * 22 * 8);
	assert_int_equal(pcs[0], 0x401000);
	assert_int_equal(pcs[1], 0x401005);
	assert_int_equal(pcs[21], 0x406666);
	assert_int_equal(pcs[22], 0x401000);
	assert_int_equal(pcs[43], 0x406000);
	free(pcs);
	free(judge_dir(dir, 99, NULL, -ENOENT));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(header),
		cmocka_unit_test(data),
		cmocka_unit_test(ending),
		cmocka_unit_test(instructions),
		cmocka_unit_test(targets),
		cmocka_unit_test(flow),
		cmocka_unit_test(signals),
		cmocka_unit_test(times),
		cmocka_unit_test(functions),
		cmocka_unit_test(kinds),
		cmocka_unit_test(classes),
		cmocka_unit_test(many_codes),
		cmocka_unit_test(whole_files),
		cmocka_unit_test(many_faults),
		cmocka_unit_test(deep_signals),
		cmocka_unit_test_teardown(system_calls, back_to_base),
		cmocka_unit_test_teardown(whole_systems, back_to_base),
		cmocka_unit_test_teardown(core_sharded, back_to_base),
		cmocka_unit_test_setup_teardown(zip_chunks, make_dir, remove_dir_and_back),
		cmocka_unit_test_setup_teardown(zip_without_its_end, make_dir, remove_dir_and_back),
		cmocka_unit_test_setup_teardown(damaged_zip, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(schedules, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(cpu_schedules, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(tables, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(directories, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(addresses, make_dir, remove_dir),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
