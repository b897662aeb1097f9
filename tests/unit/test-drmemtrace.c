/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The sink "drmemtrace": each row is a stream, and the exact records of its first thread's file.
 * Every stream is fed twice, a batch for each slice and a batch for each run and mark: the records
 * must be the same.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "decoder/drmemtrace/calls.h"
#include "decoder/drmemtrace/file.h"
#include "decoder/drmemtrace/record.h"
#include "decoder/drmemtrace/schedule.h"
#include "decoder/drmemtrace/thread.h"
#include "decoder/sink/sinks.h"
#include "tests/lib/failing.h"
#include "tests/lib/kinds.h"
#include "tests/lib/tempdir.h"
#include "tests/lib/unpack.h"

#define EPOCH  UINT64_C(11644473600000000)
#define HEADER "v7 version:7 filetype:344 tid:7 pid:5 line:64 chunk:10000000 page:4096 "
#define TAIL   "exit:7 footer"

/* --- code ---------------------------------------------------------------------------------- */

#define I(offset_, size_, class_)                                                 \
	{                                                                         \
		.offset = (offset_), .size = (size_), .iclass = PTD_INSN_##class_ \
	}
#define BLOCK(id_, target_, code, ...)                                                   \
	{                                                                                \
		.id = (id_), .n_insns = ARRAY_LEN(((struct ptd_insn[]){ __VA_ARGS__ })), \
		.size = sizeof(code) - 1, .mode = 64, .bytes = (const uint8_t *)(code),  \
		.insns = (const struct ptd_insn[]){ __VA_ARGS__ }, .target = (target_),  \
	}

enum {
	NOPS,
	NOPS2,
	COND,
	SELF,
	COND1,
	JMP,
	CALL,
	RET,
	IJMP,
	ICALL,
	LONG,
	SYS,
	SIGRET,
	EXEC,
	BARE,
	MOVRET,
	SYSRET,
	SYSRETL,
	SYSEXIT,
	IRET,
	RETF,
	RETF_PREFIXED,
	NOP,
	NOP32,
	INT3,
	DATA,
};

static const struct ptd_block blocks[] = {
	[NOPS] = BLOCK(0, 0, "\x90\x90\x90\x90", I(0, 1, OTHER), I(1, 1, OTHER), I(2, 1, OTHER),
		       I(3, 1, OTHER)),
	[NOPS2] = BLOCK(1, 0, "\x90\xf8\x90\x90", I(0, 1, OTHER), I(1, 1, OTHER), I(2, 1, OTHER),
			I(3, 1, OTHER)),
	[COND] = BLOCK(2, 0x100, "\x90\x0f\x84\xf9\0\0\0", I(0, 1, OTHER), I(1, 6, JUMP_COND)),
	[SELF] = BLOCK(3, 2, "\x74\x00", I(0, 2, JUMP_COND)),
	[COND1] = BLOCK(4, 0x10, "\x74\x0e", I(0, 2, JUMP_COND)),
	[JMP] = BLOCK(5, 0x10, "\x90\xeb\x0d", I(0, 1, OTHER), I(1, 2, JUMP)),
	[CALL] = BLOCK(6, 0x1000, "\xe8\xfb\x0f\0\0", I(0, 5, CALL)),
	[RET] = BLOCK(7, 0, "\x90\xc3", I(0, 1, OTHER), I(1, 1, RETURN)),
	[IJMP] = BLOCK(8, 0, "\xff\xe0", I(0, 2, JUMP_INDIRECT)),
	[ICALL] = BLOCK(9, 0, "\xff\xd0", I(0, 2, CALL_INDIRECT)),
	[LONG] = BLOCK(10, 0, "\x48\xb8\1\2\3\4\5\6\7\x08", I(0, 10, OTHER)),
	[SYS] = BLOCK(11, 0, "\xb8\x27\0\0\0\x0f\x05", I(0, 5, OTHER), I(5, 2, SYSCALL)),
	[SIGRET] = BLOCK(12, 0, "\x48\xc7\xc0\x0f\0\0\0\x0f\x05", I(0, 7, OTHER), I(7, 2, SYSCALL)),
	[EXEC] = BLOCK(13, 0, "\xb8\x3b\0\0\0\x0f\x05", I(0, 5, OTHER), I(5, 2, SYSCALL)),
	[BARE] = BLOCK(14, 0, "\x0f\x05", I(0, 2, SYSCALL)),
	[MOVRET] = BLOCK(15, 0, "\xb8\x0f\0\0\0", I(0, 5, OTHER)),
	[NOP] = BLOCK(17, 0, "\x90", I(0, 1, OTHER)),
	[NOP32] = { .id = 18,
		    .n_insns = 1,
		    .size = 1,
		    .mode = 32,
		    .bytes = (const uint8_t *)"\x40",
		    .insns = (const struct ptd_insn[]){ I(0, 1, OTHER) } },
	[INT3] = BLOCK(22, 0, "\x90\xcc", I(0, 1, OTHER), I(1, 1, INTERRUPT)),
	/* mov 16(%rip), %eax; mov %eax, 32(%rip); incq -16(%rip); mov (%rbx), %eax */
	[DATA] =
	    BLOCK(23, 0, "\x8b\x05\x10\0\0\0\x89\x05\x20\0\0\0\x48\xff\x05\xf0\xff\xff\xff\x8b\x03",
		  I(0, 6, OTHER), I(6, 6, OTHER), I(12, 7, OTHER), I(19, 2, OTHER)),
	[SYSRET] = BLOCK(16, 0, "\x48\x0f\x07", I(0, 3, RETURN_FAR)),
	[SYSRETL] = BLOCK(17, 0, "\x0f\x07", I(0, 2, RETURN_FAR)),
	[SYSEXIT] = BLOCK(18, 0, "\x0f\x35", I(0, 2, RETURN_FAR)),
	[IRET] = BLOCK(19, 0, "\x48\xcf", I(0, 2, RETURN_FAR)),
	[RETF] = BLOCK(20, 0, "\xca\x0f\x07", I(0, 3, RETURN_FAR)),
	[RETF_PREFIXED] = BLOCK(21, 0, "\x48\xca\x0f\x35", I(0, 4, RETURN_FAR)),
};

/* --- streams ------------------------------------------------------------------------------- */

struct step {
	enum { END, SLICE, PIECE, MARK } kind;
	struct ptd_slice slice;
	struct ptd_run run;
	struct ptd_mark mark;
};

#define SLICE(cpu_, tid_, space_, t)          \
	{                                     \
		.kind = SLICE,                \
		.slice = { .cpu = (cpu_),     \
			   .pid = 5,          \
			   .tid = (tid_),     \
			   .space = (space_), \
			   .t0 = (t),         \
			   .comm = "a.out" }, \
	}
#define PART(name, base_, first_, n_, t_)        \
	{                                        \
		.kind = PIECE,                   \
		.run = { .block = &blocks[name], \
			 .base = (base_),        \
			 .first = (first_),      \
			 .n = (n_),              \
			 .t = (t_) },            \
	}
#define ALL(name, base_, n_) PART(name, base_, 0, n_, 0)
#define ASYNC(ip_)                                                             \
	{                                                                      \
		.kind = MARK, .mark = { .kind = PTD_MARK_ASYNC, .ip = (ip_) }, \
	}
#define OFF                                   \
	{                                     \
		.kind = MARK,                 \
		.mark = {                     \
			.kind = PTD_MARK_OFF, \
		},                            \
	}
#define GAP(reason_, ip_)                                                                   \
	{                                                                                   \
		.kind = MARK,                                                               \
		.mark = { .kind = PTD_MARK_GAP, .reason = PTD_GAP_##reason_, .ip = (ip_) }, \
	}
#define OUT_OF_SCOPE(ip_)                                                                          \
	{                                                                                          \
		.kind = MARK,                                                                      \
		.mark = { .kind = PTD_MARK_OUT_OF_SCOPE, .reason = PTD_GAP_NO_CODE, .ip = (ip_) }, \
	}
#define STEPS_MAX 32

/* The symbols of the blocks. */
static const struct ptd_symbol *const *batch_symbols;
static size_t n_batch_symbols;

static int feed(struct sink *sink, const struct step *steps, bool whole)
{
	struct ptd_run runs[STEPS_MAX];
	struct ptd_mark marks[STEPS_MAX];
	struct ptd_slice slice = { .id = UINT64_MAX };
	struct ptd_batch batch = { .slice = &slice,
				   .runs = runs,
				   .marks = marks,
				   .symbols = batch_symbols,
				   .n_symbols = n_batch_symbols };
	int r = 0;

	for (;; steps++) {
		if (batch.n_runs + batch.n_marks > 0 &&
		    (!whole || steps->kind == SLICE || steps->kind == END)) {
			r = sink_batch(sink, &batch);
			batch.n_runs = batch.n_marks = 0;
		}
		if (r < 0 || steps->kind == END)
			return r;
		if (steps->kind == SLICE) {
			const uint64_t id = slice.id + 1;

			slice = steps->slice;
			slice.id = id;
		} else if (steps->kind == PIECE) {
			runs[batch.n_runs++] = steps->run;
		} else {
			marks[batch.n_marks] = steps->mark;
			marks[batch.n_marks++].run = batch.n_runs;
		}
	}
}

/* --- reading back -------------------------------------------------------------------------- */

static void print_marker(FILE *f, const struct memtrace_record *r)
{
	static const char *const names[] = {
		[0] = "sig:",    [1] = "xfer:",     [3] = "cpu:",      [9] = "filetype:",
		[10] = "line:",  [12] = "version:", [14] = "win:",     [18] = "page:",
		[20] = "chunk:", [21] = "end:",     [22] = "ordinal:", [29] = "to:",
		[4] = "func:",   [5] = "call:",     [7] = "value:",    [101] = "sym:",
		[43] = "event:", [44] = "back:",
	};

	if (r->size == 2)
		fprintf(f, "t:%" PRId64 " ", (int64_t)(r->addr - EPOCH));
	else if (r->size >= ARRAY_LEN(names) || !names[r->size])
		fprintf(f, "marker%u ", r->size);
	else
		fprintf(f,
			r->size <= 1 || r->size == 5 || r->size == 9 || r->size == 29 ||
				r->size == 43 || r->size == 44
			    ? "%s%" PRIx64 " "
			    : "%s%" PRId64 " ",
			names[r->size], r->addr);
}

static void print_record(FILE *f, const struct memtrace_record *r)
{
	static const char *const names[] = {
		[0] = "read@",      [1] = "write@",  [10] = "",         [11] = "jmp@",
		[12] = "ijmp@",     [14] = "call@",  [15] = "icall@",   [16] = "ret@",
		[31] = "sysenter@", [48] = "taken@", [49] = "untaken@",
	};

	if (r->type == MEMTRACE_MARKER)
		print_marker(f, r);
	else if (r->type == MEMTRACE_HEADER)
		fprintf(f, "v%" PRIu64 " ", r->addr);
	else if (r->type == MEMTRACE_THREAD)
		fprintf(f, "tid:%" PRId64 " ", r->addr);
	else if (r->type == MEMTRACE_PID)
		fprintf(f, "pid:%" PRId64 " ", r->addr);
	else if (r->type == MEMTRACE_THREAD_EXIT)
		fprintf(f, "exit:%" PRId64 " ", r->addr);
	else if (r->type == MEMTRACE_FOOTER)
		fprintf(f, r->size || r->addr ? "badfooter" : "footer");
	else if (r->type == MEMTRACE_ENCODING)
		for (size_t i = 0; i < r->size; i++)
			fprintf(f, "%02x%s", (unsigned int)(r->addr >> (8 * i) & 0xff),
				i + 1 < r->size ? "" : " ");
	else if (r->type < ARRAY_LEN(names) && names[r->type])
		fprintf(f, "%s%" PRIx64 "+%u ", names[r->type], r->addr, r->size);
	else
		fprintf(f, "type%u ", r->type);
}

static char *print_file(const char *path)
{
	struct memtrace_record record;
	struct unpacked u;
	char *text = NULL;
	size_t size, i, member = 0;
	FILE *f = open_memstream(&text, &size);

	if (access(path, R_OK) < 0)
		fail_msg("%s: %s", path, strerror(errno));
	u = unpack(path);
	for (i = 0; i + sizeof(record) <= u.bytes.n; i += sizeof(record)) {
		if (i == u.ends.items[member]) {
			fprintf(f, "| ");
			member++;
		}
		memcpy(&record, u.bytes.items + i, sizeof(record));
		print_record(f, &record);
	}
	assert_int_equal(i, u.bytes.n);
	unpacked_deinit(&u);
	fclose(f);
	return text;
}

static void check_file(const char *dir, const char *file, const char *expected)
{
	_cleanup_(freep) char *path = NULL, *text = NULL;

	assert_true(asprintf(&path, "%s/trace/%s", dir, file) > 0);
	text = print_file(path);
	assert_string_equal(text, expected);
}

static char base[TEMPDIR_SIZE];

static int make_base(void **state)
{
	(void)state;
	tempdir_make("drmemtrace", base);
	return 0;
}

static int remove_base(void **state)
{
	(void)state;
	tempdir_remove(base);
	return 0;
}

/* One that does not exist. */
static char *make_path(void)
{
	static unsigned int n;
	char *path;

	assert_true(asprintf(&path, "%s/%u", base, n) > 0);
	n++;
	return path;
}

static const char *const no_functions[] = { "func-markers=none", NULL };

static const char *const whole_system[] = { "func-markers=none", "whole-system", NULL };

static const char *const plain[] = { "compress=none", "func-markers=none", NULL };

static struct sink *open_sink_with(const char *const *options, const char *path,
				   enum ptd_clock clock, int64_t offset)
{
	static struct ptd_info info; /* borrowed until the sink is freed */
	struct sink *sink = NULL;

	info = (struct ptd_info){ .clock = clock, .realtime_offset_ns = offset };
	assert_int_equal(sink_open(&sink_drmemtrace, path, &info, options, &sink), 0);
	return sink;
}

static struct sink *open_sink(const char *path, enum ptd_clock clock, int64_t offset)
{
	return open_sink_with(no_functions, path, clock, offset);
}

/* --- one thread ---------------------------------------------------------------------------- */

#define NOP4(b) "90 " b "0+1 90 " b "1+1 90 " b "2+1 90 " b "3+1 "
#define T5      "t:5 cpu:3 "
#define KERNEL  UINT64_C(0xffffffff81000000)
#define T0      T5 "win:0 sym:0 " /* how a file goes on behind its header */

static const struct {
	const char *name;
	struct step steps[STEPS_MAX];
	const char *expected; /* between header and tail */
} rows[] = {
	{ "straight line", { SLICE(3, 7, 1, 5000), ALL(NOPS, 0x1000, 4) }, T0 NOP4("100") },
	{ "long instruction",
	  { SLICE(3, 7, 1, 5000), ALL(LONG, 0x1000, 1) },
	  T0 "48b8010203040506 0708 1000+10 " },
	{ "cpu unknown",
	  { SLICE(PTD_ID_UNKNOWN, 7, 1, 5000), ALL(NOPS, 0x1000, 1) },
	  "t:5 cpu:-1 win:0 sym:0 90 1000+1 " },
	{ "encodings only once, indirect jump",
	  { SLICE(3, 7, 1, 5000), ALL(NOPS, 0x1000, 4), ALL(IJMP, 0x1004, 1), ALL(NOPS, 0x1000, 4),
	    ALL(IJMP, 0x1004, 1), ALL(NOPS, 0x1000, 1) },
	  T0 NOP4("100") "ffe0 to:1000 ijmp@1004+2 1000+1 1001+1 1002+1 1003+1 "
			 "to:1000 ijmp@1004+2 1000+1 " },
	{ "a block in pieces",
	  { SLICE(3, 7, 1, 5000), ALL(NOPS, 0x1000, 2), PART(NOPS, 0x1000, 2, 2, 0),
	    ALL(IJMP, 0x1004, 1), ALL(NOPS, 0x1000, 4) },
	  T0 NOP4("100") "ffe0 to:1000 ijmp@1004+2 1000+1 1001+1 1002+1 1003+1 " },
	{ "a block from its middle",
	  { SLICE(3, 7, 1, 5000), PART(NOPS, 0x1000, 2, 2, 0), ALL(IJMP, 0x1004, 1),
	    PART(NOPS, 0x1000, 1, 3, 0) },
	  T0 "90 1002+1 90 1003+1 ffe0 to:1001 ijmp@1004+2 90 1001+1 90 1002+1 90 1003+1 " },
	{ "conditional jumps",
	  { SLICE(3, 7, 1, 5000), ALL(COND, 0x1000, 2), ALL(COND, 0x1100, 2),
	    ALL(NOPS, 0x1107, 1) },
	  T0 "90 1000+1 0f84f9000000 taken@1001+6 90 1100+1 0f84f9000000 untaken@1101+6 "
	     "90 1107+1 " },
	{ "to its own fall-through is taken",
	  { SLICE(3, 7, 1, 5000), ALL(SELF, 0x1000, 1), ALL(NOPS, 0x1002, 1) },
	  T0 "7400 taken@1000+2 90 1002+1 " },
	{ "call and return",
	  { SLICE(3, 7, 1, 5000), ALL(CALL, 0x1000, 1), ALL(RET, 0x2000, 2), ALL(JMP, 0x1005, 2),
	    ALL(ICALL, 0x1015, 1), ALL(NOPS, 0x3000, 1) },
	  T0 "e8fb0f0000 call@1000+5 90 2000+1 c3 to:1005 ret@2001+1 90 1005+1 eb0d jmp@1006+2 "
	     "ffd0 to:3000 icall@1015+2 90 3000+1 " },
	{ "sysret is a jump",
	  { SLICE(3, 7, 1, 5000), ALL(SYSRET, 0x1000, 1), ALL(NOPS, 0x3000, 1) },
	  T0 "480f07 to:3000 ijmp@1000+3 90 3000+1 " },
	{ "sysret of 32-bit code is a jump",
	  { SLICE(3, 7, 1, 5000), ALL(SYSRETL, 0x1000, 1), ALL(NOPS, 0x3000, 1) },
	  T0 "0f07 to:3000 ijmp@1000+2 90 3000+1 " },
	{ "sysexit is a jump",
	  { SLICE(3, 7, 1, 5000), ALL(SYSEXIT, 0x1000, 1), ALL(NOPS, 0x3000, 1) },
	  T0 "0f35 to:3000 ijmp@1000+2 90 3000+1 " },
	{ "iret is a return",
	  { SLICE(3, 7, 1, 5000), ALL(IRET, 0x1000, 1), ALL(NOPS, 0x3000, 1) },
	  T0 "48cf to:3000 ret@1000+2 90 3000+1 " },
	{ "retf is a return, whatever its operand looks like",
	  { SLICE(3, 7, 1, 5000), ALL(RETF, 0x1000, 1), ALL(NOPS, 0x3000, 1) },
	  T0 "ca0f07 to:3000 ret@1000+3 90 3000+1 " },
	{ "with a prefix, too",
	  { SLICE(3, 7, 1, 5000), ALL(RETF_PREFIXED, 0x1000, 1), ALL(NOPS, 0x3000, 1) },
	  T0 "48ca0f35 to:3000 ret@1000+4 90 3000+1 " },
	{ "last conditional left out",
	  { SLICE(3, 7, 1, 5000), ALL(COND, 0x1000, 2) },
	  T0 "90 1000+1 " },
	{ "last direct jump is kept",
	  { SLICE(3, 7, 1, 5000), ALL(JMP, 0x1000, 2) },
	  T0 "90 1000+1 eb0d jmp@1001+2 " },
	{ "gap",
	  { SLICE(3, 7, 1, 5000), ALL(NOPS, 0x1000, 1), GAP(OVERFLOW, 0), GAP(LOST, 0),
	    ALL(NOPS, 0x1000, 1), GAP(LOST, 0) },
	  T0 "90 1000+1 " T5 "win:1 1000+1 " },
	{ "32-bit code between",
	  { SLICE(3, 7, 1, 5000), ALL(NOPS, 0x1000, 1), ALL(NOP32, 0x1001, 1),
	    ALL(NOP32, 0x1002, 1), ALL(NOPS, 0x1000, 1) },
	  T0 "90 1000+1 " T5 "win:1 1000+1 " },
	{ "gap at the start",
	  { SLICE(3, 7, 1, 5000), GAP(NO_SYNC, 0), ALL(NOPS, 0x1000, 1) },
	  T0 "90 1000+1 " },
	{ "gap behind a conditional, announced again",
	  { SLICE(3, 7, 1, 5000), ALL(COND, 0x1000, 2), GAP(OVERFLOW, 0), ALL(COND, 0x1000, 2),
	    ALL(NOPS, 0x1007, 1) },
	  T0 "90 1000+1 " T5 "win:1 90 1000+1 0f84f9000000 untaken@1001+6 90 1007+1 " },
	{ "gap behind a direct jump: timestamp waits",
	  { SLICE(3, 7, 1, 5000), ALL(JMP, 0x1000, 2), GAP(OVERFLOW, 0), ALL(NOPS, 0x1010, 2) },
	  T0 "90 1000+1 eb0d jmp@1001+2 win:1 90 1010+1 " T5 "90 1011+1 " },
	{ "jump to where no code is known",
	  { SLICE(3, 7, 1, 5000), ALL(IJMP, 0x1000, 1), GAP(NO_CODE, 0x7000),
	    ALL(NOPS, 0x1010, 1) },
	  T0 "ffe0 to:7000 ijmp@1000+2 win:1 90 1010+1 " T5 },
	{ "code that was not asked for",
	  { SLICE(3, 7, 1, 5000), ALL(IJMP, 0x1000, 1), OUT_OF_SCOPE(0x7000),
	    ALL(NOPS, 0x1010, 1) },
	  T0 "ffe0 to:7000 ijmp@1000+2 win:1 90 1010+1 " T5 },
	{ "unexplained",
	  { SLICE(3, 7, 1, 5000), ALL(NOPS, 0x1000, 1), ALL(NOPS, 0x1002, 1) },
	  T0 "90 1000+1 " T5 "win:1 90 1002+1 " },
	{ "impossible outcome",
	  { SLICE(3, 7, 1, 5000), ALL(COND, 0x1000, 2), ALL(NOPS, 0x5000, 1) },
	  T0 "90 1000+1 " T5 "win:1 90 5000+1 " },
	{ "interrupt",
	  { SLICE(3, 7, 1, 5000), ALL(NOPS, 0x1000, 1), ASYNC(0x1001),
	    PART(NOPS, 0x1000, 1, 1, 0) },
	  T0 "90 1000+1 90 1001+1 " },
	{ "interrupt at a jump's target",
	  { SLICE(3, 7, 1, 5000), ALL(COND, 0x1000, 2), ASYNC(0x1100), ALL(NOPS, 0x1100, 1) },
	  T0 "90 1000+1 0f84f9000000 taken@1001+6 90 1100+1 " },
	{ "int3 is not reported, and goes on behind itself",
	  { SLICE(3, 7, 1, 5000), ALL(INT3, 0x1000, 1), ASYNC(0x1001), ALL(NOPS, 0x1002, 1) },
	  T0 "90 1000+1 cc 1001+1 90 1002+1 " },
	{ "int3 has a handler",
	  { SLICE(3, 7, 1, 5000), ALL(INT3, 0x1000, 1), ASYNC(0x1001), ALL(SIGRET, 0x2001, 2), OFF,
	    ALL(NOPS, 0x1002, 1) },
	  T0 "90 1000+1 cc 1001+1 sig:1002 " T5 "48c7c00f000000 2001+7 0f05 2008+2 " T5
	     "xfer:200a 90 1002+1 " },
	{ "a signal just before int3, which the packets do not tell from int3's own",
	  { SLICE(3, 7, 1, 5000), ALL(INT3, 0x1000, 1), ASYNC(0x1001), ALL(SIGRET, 0x2001, 2), OFF,
	    ASYNC(0x1001), ALL(NOPS, 0x1002, 1) },
	  T0 "90 1000+1 cc 1001+1 sig:1002 " T5 "48c7c00f000000 2001+7 0f05 2008+2 " T5
	     "xfer:200a sig:1002 " T5 T5 "win:1 90 1002+1 " },
	{ "int3 whose bytes are not known",
	  { SLICE(3, 7, 1, 5000), ALL(NOPS, 0x1000, 4), ASYNC(0x1004), ALL(NOPS, 0x1005, 1) },
	  T0 NOP4("100") T5 "win:1 90 1005+1 " },
	{ "vsyscall page",
	  { SLICE(3, 7, 1, 5000), ALL(ICALL, 0x1000, 1), ASYNC(0xffffffffff600000),
	    ALL(NOPS, 0x1002, 1) },
	  T0 "ffd0 to:ffffffffff600000 icall@1000+2 win:1 90 1002+1 " T5 },
	{ "system call",
	  { SLICE(3, 7, 1, 5000), ALL(SYS, 0x1000, 2), OFF, PART(NOPS, 0x1007, 0, 1, 90000) },
	  T0 "b827000000 1000+5 0f05 1005+2 t:90 cpu:3 90 1007+1 " },
	{ "a system call, with the kernel's code",
	  { SLICE(3, 7, 1, 5000), ALL(SYS, 0x1000, 2), ALL(NOPS, KERNEL, 4),
	    ALL(SYSRET, KERNEL + 4, 1), PART(NOPS, 0x1007, 0, 1, 90000) },
	  T0 "b827000000 1000+5 0f05 1005+2 t:90 cpu:3 90 1007+1 " },
	{ "an interrupt, with the kernel's code, which is interrupted, too",
	  { SLICE(3, 7, 1, 5000), ALL(COND, 0x1000, 2), ASYNC(0x1100), ALL(NOPS, KERNEL, 2),
	    ASYNC(KERNEL + 2), ALL(IRET, KERNEL + 0x100, 1), PART(NOPS, KERNEL, 2, 2, 0),
	    ALL(IRET, KERNEL + 4, 1), ALL(NOPS, 0x1100, 1) },
	  T0 "90 1000+1 0f84f9000000 taken@1001+6 90 1100+1 " },
	{ "a signal, with the kernel's code",
	  { SLICE(3, 7, 1, 5000), ALL(NOPS, 0x1000, 1), ASYNC(0x1001), ALL(IRET, KERNEL, 1),
	    ALL(SIGRET, 0x2001, 2), ALL(SYSRET, KERNEL + 4, 1), PART(NOPS, 0x1000, 1, 1, 0) },
	  T0 "90 1000+1 sig:1001 " T5 "48c7c00f000000 2001+7 0f05 2008+2 " T5
	     "xfer:200a 90 1001+1 " },
	{ "a gap in the kernel's code",
	  { SLICE(3, 7, 1, 5000), ALL(SYS, 0x1000, 2), ALL(NOPS, KERNEL, 4), GAP(OVERFLOW, 0),
	    ALL(SYSRET, KERNEL + 4, 1), ALL(NOPS, 0x1007, 1) },
	  T0 "b827000000 1000+5 0f05 1005+2 " T5 "win:1 90 1007+1 " },
	{ "the kernel's code first",
	  { SLICE(3, 7, 1, 5000), ALL(SYSRET, KERNEL + 4, 1), ALL(NOPS, 0x1007, 1) },
	  T0 "90 1007+1 " },
	{ "execve",
	  { SLICE(3, 7, 1, 5000), ALL(NOPS, 0x1000, 1), PART(EXEC, 0x1001, 0, 2, 0), OFF,
	    SLICE(3, 7, 2, 9000), ALL(NOPS2, 0x1000, 2) },
	  T0 "90 1000+1 b83b000000 1001+5 0f05 1006+2 t:9 cpu:3 xfer:1008 90 1000+1 f8 1001+1 " },
	{ "execve by another thread",
	  { SLICE(3, 7, 1, 5000), ALL(NOPS, 0x1000, 1), ASYNC(0x1001), SLICE(3, 7, 2, 9000),
	    ALL(NOPS, 0x8000, 1) },
	  T0 "90 1000+1 t:9 cpu:3 win:1 90 8000+1 " },
	{ "restarted without a handler",
	  { SLICE(3, 7, 1, 5000), ALL(SYS, 0x1000, 2), OFF, PART(SYS, 0x1000, 1, 1, 0), OFF,
	    ALL(NOPS, 0x1007, 1) },
	  T0 "b827000000 1000+5 0f05 1005+2 " T5 "xfer:1007 1005+2 90 1007+1 " },
	{ "migration",
	  { SLICE(3, 7, 1, 5000), ALL(NOPS, 0x1000, 1), SLICE(4, 7, 1, 6000),
	    PART(NOPS, 0x1000, 1, 1, 0) },
	  T0 "90 1000+1 t:6 cpu:4 90 1001+1 " },
	{ "migration behind branches",
	  { SLICE(3, 7, 1, 5000), ALL(COND, 0x1000, 2), ASYNC(0x1100), SLICE(4, 7, 1, 6000),
	    ALL(COND1, 0x1100, 1), ALL(CALL, 0x1110, 1), ALL(NOPS, 0x2110, 2) },
	  T0 "90 1000+1 0f84f9000000 taken@1001+6 740e taken@1100+2 e8fb0f0000 call@1110+5 "
	     "90 2110+1 t:6 cpu:4 90 2111+1 " },
	{ "time goes on within a slice, never back",
	  { SLICE(3, 7, 1, 5000), PART(NOPS, 0x1000, 0, 1, 14999), PART(NOPS, 0x1000, 1, 1, 24998),
	    PART(NOPS, 0x1000, 2, 1, 24999), SLICE(4, 7, 1, 20000), PART(NOPS, 0x1000, 3, 1, 0) },
	  "t:14 cpu:3 win:0 sym:0 90 1000+1 90 1001+1 t:24 cpu:3 90 1002+1 t:24 cpu:4 90 1003+1 " },
	{ "other bytes at the same address",
	  { SLICE(3, 7, 1, 5000), ALL(NOPS, 0x1000, 4), ALL(IJMP, 0x1004, 1), ALL(NOPS2, 0x1000, 4),
	    ALL(IJMP, 0x1004, 1), ALL(NOPS, 0x1000, 4), ALL(IJMP, 0x1004, 1),
	    ALL(NOPS, 0x1000, 2) },
	  T0 NOP4("100") "ffe0 to:1000 ijmp@1004+2 90 1000+1 f8 1001+1 90 1002+1 90 1003+1 "
			 "ffe0 to:1000 ijmp@1004+2 " NOP4(
			     "100") "ffe0 to:1000 ijmp@1004+2 1000+1 1001+1 " },
	{ "same bytes in another block",
	  { SLICE(3, 7, 1, 5000), ALL(NOPS, 0x1000, 4), ALL(IJMP, 0x1004, 1), ALL(NOPS, 0x1000, 3),
	    ASYNC(0x1003), ALL(NOP, 0x1003, 1), ALL(IJMP, 0x1004, 1), ALL(NOPS, 0x1000, 1) },
	  T0 NOP4("100") "ffe0 to:1000 ijmp@1004+2 1000+1 1001+1 1002+1 90 1003+1 "
			 "to:1000 ijmp@1004+2 1000+1 " },

	/* Signals. */
	{ "signal",
	  { SLICE(3, 7, 1, 5000), ALL(NOPS, 0x1000, 1), ASYNC(0x1001), ALL(NOP, 0x2000, 1),
	    ALL(SIGRET, 0x2001, 2), OFF, PART(NOPS, 0x1000, 1, 1, 7000) },
	  T0 "90 1000+1 sig:1001 " T5 "90 2000+1 48c7c00f000000 2001+7 0f05 2008+2 "
	     "t:7 cpu:3 xfer:200a 90 1001+1 " },
	{ "signal behind a branch",
	  { SLICE(3, 7, 1, 5000), ALL(RET, 0x1000, 2), ASYNC(0x3000), ALL(SIGRET, 0x2001, 2), OFF,
	    ALL(NOPS, 0x3000, 1) },
	  T0 "90 1000+1 c3 to:3000 ret@1001+1 sig:3000 " T5 "48c7c00f000000 2001+7 0f05 2008+2 " T5
	     "xfer:200a 90 3000+1 " },
	{ "signal before anything else",
	  { SLICE(3, 7, 1, 5000), ASYNC(0x1000), ALL(SIGRET, 0x2001, 2), OFF,
	    ALL(NOPS, 0x1000, 1) },
	  T5 "win:0 sig:1000 " T5 "sym:0 48c7c00f000000 2001+7 0f05 2008+2 " T5
	     "xfer:200a 90 1000+1 " },
	{ "return from a handler that was not seen",
	  { SLICE(3, 7, 1, 5000), ALL(SIGRET, 0x2001, 2), OFF, ALL(NOPS, 0x1000, 1) },
	  T0 "48c7c00f000000 2001+7 0f05 2008+2 " T5 "xfer:200a 90 1000+1 " },
	{ "number loaded in the block before",
	  { SLICE(3, 7, 1, 5000), ALL(MOVRET, 0x2000, 1), ASYNC(0x2005), ALL(BARE, 0x2005, 1), OFF,
	    ALL(NOPS, 0x1000, 1) },
	  T0 "b80f000000 2000+5 0f05 2005+2 " T5 "xfer:2007 90 1000+1 " },
	{ "signal at the end of a system call",
	  { SLICE(3, 7, 1, 5000), ALL(SYS, 0x1000, 2), OFF, ALL(NOP, 0x2000, 1),
	    ALL(SIGRET, 0x2001, 2), OFF, ALL(NOPS, 0x1007, 1) },
	  T0 "b827000000 1000+5 0f05 1005+2 sig:1007 " T5 "90 2000+1 48c7c00f000000 2001+7 "
	     "0f05 2008+2 " T5 "xfer:200a 90 1007+1 " },
	{ "restarted system call",
	  { SLICE(3, 7, 1, 5000), ALL(SYS, 0x1000, 2), OFF, ALL(NOP, 0x2000, 1),
	    ALL(SIGRET, 0x2001, 2), OFF, PART(SYS, 0x1000, 1, 1, 0), OFF, ALL(NOPS, 0x1007, 1) },
	  T0 "b827000000 1000+5 0f05 1005+2 sig:1005 " T5 "90 2000+1 48c7c00f000000 2001+7 "
	     "0f05 2008+2 " T5 "xfer:200a 1005+2 90 1007+1 " },
	{ "nested signals",
	  { SLICE(3, 7, 1, 5000), ALL(NOPS, 0x1000, 1), ASYNC(0x1001), ALL(NOP, 0x2000, 1),
	    ASYNC(0x2001), ALL(SIGRET, 0x3000, 2), OFF, ALL(SIGRET, 0x2001, 2), OFF,
	    PART(NOPS, 0x1000, 1, 1, 0) },
	  T0 "90 1000+1 sig:1001 " T5 "90 2000+1 sig:2001 " T5
	     "48c7c00f000000 3000+7 0f05 3007+2 " T5
	     "xfer:3009 48c7c00f000000 2001+7 0f05 2008+2 " T5 "xfer:200a 90 1001+1 " },
	{ "signal at a handler's first instruction",
	  { SLICE(3, 7, 1, 5000), ALL(NOPS, 0x1000, 1), ASYNC(0x1001), ASYNC(0x2001),
	    ALL(SIGRET, 0x3000, 2), OFF, ALL(SIGRET, 0x2001, 2), OFF, PART(NOPS, 0x1000, 1, 1, 0) },
	  T0 "90 1000+1 sig:1001 " T5 "sig:2001 " T5 "48c7c00f000000 3000+7 0f05 3007+2 " T5
	     "xfer:3009 48c7c00f000000 2001+7 0f05 2008+2 " T5 "xfer:200a 90 1001+1 " },
	{ "the next signal was waiting, the call is restarted",
	  { SLICE(3, 7, 1, 5000), ALL(SYS, 0x1000, 2), OFF, ALL(SIGRET, 0x2001, 2), OFF,
	    ALL(SIGRET, 0x3000, 2), OFF, PART(SYS, 0x1000, 1, 1, 0) },
	  T0 "b827000000 1000+5 0f05 1005+2 sig:1005 " T5 "48c7c00f000000 2001+7 0f05 2008+2 " T5
	     "xfer:200a sig:1005 " T5 "48c7c00f000000 3000+7 0f05 3007+2 " T5 "xfer:3009 1005+2 " },
	{ "a handler left by siglongjmp, and one that runs whole",
	  { SLICE(3, 7, 1, 5000), ALL(NOPS, 0x1000, 1), ASYNC(0x1001), ALL(IJMP, 0x2000, 1),
	    ALL(NOPS, 0x4000, 1), ASYNC(0x4001), ALL(SIGRET, 0x2001, 2), OFF,
	    PART(NOPS, 0x4000, 1, 1, 0) },
	  T0 "90 1000+1 sig:1001 " T5 "ffe0 to:4000 ijmp@2000+2 90 4000+1 sig:4001 " T5
	     "48c7c00f000000 2001+7 0f05 2008+2 " T5 "xfer:200a 90 4001+1 " },
	{ "siglongjmp into the outer handler, which returns: a reader's stack does not allow it",
	  { SLICE(3, 7, 1, 5000), ALL(NOPS, 0x1000, 1), ASYNC(0x1001), ALL(NOP, 0x2000, 1),
	    ASYNC(0x2001), ALL(IJMP, 0x3000, 1), ALL(SIGRET, 0x2101, 2), OFF,
	    PART(NOPS, 0x1000, 1, 1, 0) },
	  T0 "90 1000+1 sig:1001 " T5 "90 2000+1 sig:2001 " T5
	     "ffe0 to:2101 ijmp@3000+2 48c7c00f000000 2101+7 0f05 2108+2 " T5 "win:1 90 1001+1 " },
	{ "execve in a handler",
	  { SLICE(3, 7, 1, 5000), ALL(NOPS, 0x1000, 1), ASYNC(0x1001), ALL(EXEC, 0x2000, 2), OFF,
	    SLICE(3, 7, 2, 5000), ALL(NOPS, 0x8000, 1) },
	  T0 "90 1000+1 sig:1001 " T5 "b83b000000 2000+5 0f05 2005+2 " T5 "win:1 90 8000+1 " },
};

/* Each row is written in batches of one run, and as a whole, compressed and not. */
static void one_thread(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		print_message("  %s\n", rows[i].name);
		for (int way = 0; way < 4; way++) {
			_cleanup_(freep) char *path = make_path(), *expected = NULL;
			struct sink *sink =
			    open_sink_with(way & 1 ? plain : no_functions, path, PTD_CLOCK_NS, 0);

			assert_int_equal(feed(sink, rows[i].steps, way & 2), 0);
			assert_int_equal(sink_finish(sink, NULL), 0);
			assert_null(sink_free(sink));
			assert_true(asprintf(&expected, "%s%s%s", HEADER, rows[i].expected, TAIL) >
				    0);
			check_file(path,
				   way & 1 ? "drmemtrace.a_out.7.0000.trace"
					   : "drmemtrace.a_out.7.0000.trace.zip",
				   expected);
		}
	}
}

/* The packets do not tell a signal just before int3 from int3's own, but the recording may. */
static void signal_before_int3(void **state)
{
	static const struct {
		uint32_t signal;
		struct step steps[8];
		const char *expected;
	} cases[] = {
		{ SIGALRM,
		  { SLICE(3, 7, 1, 5000), ALL(INT3, 0x1000, 1), ASYNC(0x1001),
		    ALL(SIGRET, 0x2001, 2), OFF, ASYNC(0x1001), ALL(NOPS, 0x1002, 1) },
		  "sig:1001 marker40 " T5 "48c7c00f000000 2001+7 0f05 2008+2 " T5
		  "xfer:200a cc 1001+1 90 1002+1 " },
		{ SIGTRAP,
		  { SLICE(3, 7, 1, 5000), ALL(INT3, 0x1000, 1), ASYNC(0x1001),
		    ALL(SIGRET, 0x2001, 2), OFF, ALL(NOPS, 0x1002, 1) },
		  "cc 1001+1 sig:1002 marker40 " T5 "48c7c00f000000 2001+7 0f05 2008+2 " T5
		  "xfer:200a 90 1002+1 " },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		_cleanup_(freep) char *path = make_path(), *expected = NULL;
		struct sink *sink = open_sink(path, PTD_CLOCK_NS, 0);
		const struct ptd_sideband record = { .kind = PTD_SIDEBAND_SIGNAL,
						     .t = 5000,
						     .pid = 5,
						     .tid = 7,
						     .signal = cases[i].signal,
						     .address = 0x2001 };

		assert_int_equal(sink_take_sideband(sink, &record), 0);
		assert_int_equal(feed(sink, cases[i].steps, true), 0);
		assert_int_equal(sink_finish(sink, NULL), 0);
		assert_null(sink_free(sink));
		assert_true(asprintf(&expected, HEADER T0 "90 1000+1 %s" TAIL, cases[i].expected) >
			    0);
		check_file(path, "drmemtrace.a_out.7.0000.trace.zip", expected);
	}
}

/* --- with the kernel's code ---------------------------------------------------------------- */

#define K "ffffffff8100"

static const struct {
	const char *name;
	struct step steps[STEPS_MAX];
	const char *expected; /* between header and tail */
} kernel_rows[] = {
	{ "a system call",
	  { SLICE(3, 7, 1, 5000), ALL(SYS, 0x1000, 2), ALL(NOPS, KERNEL, 4),
	    ALL(SYSRET, KERNEL + 4, 1), ALL(NOPS, 0x1007, 2) },
	  T0 "b827000000 1000+5 0f05 1005+2 event:1007 " NOP4(
	      K "000") "480f07 to:1007 ijmp@" K "0004+3 back:" K "0004 90 1007+1 90 1008+1 " },
	{ "an interrupt behind a branch, which is interrupted, too",
	  { SLICE(3, 7, 1, 5000), ALL(COND, 0x1000, 2), ASYNC(0x1100), ALL(NOPS, KERNEL, 2),
	    ASYNC(KERNEL + 2), ALL(IRET, KERNEL + 0x100, 1), PART(NOPS, KERNEL, 2, 2, 0),
	    ALL(IRET, KERNEL + 4, 1), ALL(NOPS, 0x1100, 1) },
	  T0 "90 1000+1 0f84f9000000 taken@1001+6 event:1100 90 " K "0000+1 90 " K "0001+1 "
	     "event:" K "0002 48cf to:" K "0002 ret@" K "0100+2 back:" K "0100 90 " K "0002+1 90 " K
	     "0003+1 48cf to:1100 ret@" K "0004+2 back:" K "0004 90 1100+1 " },
	{ "a signal: its handler returns by a system call of its own",
	  { SLICE(3, 7, 1, 5000), ALL(NOPS, 0x1000, 1), ASYNC(0x1001), ALL(IRET, KERNEL, 1),
	    ALL(SIGRET, 0x2001, 2), ALL(SYSRET, KERNEL + 4, 1), PART(NOPS, 0x1000, 1, 1, 0) },
	  T0 "90 1000+1 event:1001 48cf to:2001 ret@" K "0000+2 back:" K "0000 xfer:1001 "
	     "48c7c00f000000 2001+7 0f05 2008+2 event:200a 480f07 to:1001 ijmp@" K "0004+3 back:" K
	     "0004 xfer:200a 90 1001+1 " },
	{ "a signal that came while the kernel was interrupted",
	  { SLICE(3, 7, 1, 5000), ALL(SYS, 0x1000, 2), ALL(NOPS, KERNEL, 2), ASYNC(KERNEL + 2),
	    ALL(IRET, KERNEL + 0x100, 1), ALL(NOPS, 0x2000, 1) },
	  T0 "b827000000 1000+5 0f05 1005+2 event:1007 90 " K "0000+1 90 " K "0001+1 event:" K
	     "0002 48cf to:2000 ret@" K "0100+2 back:" K "0100 back:" K
	     "0100 xfer:1007 90 2000+1 " },
	{ "execve",
	  { SLICE(3, 7, 1, 5000), ALL(EXEC, 0x1000, 2), ALL(NOPS, KERNEL, 4),
	    ALL(SYSRET, KERNEL + 4, 1), SLICE(3, 7, 2, 5000), ALL(NOPS, 0x8000, 1),
	    ALL(SYS, 0x8001, 2), ALL(NOPS, KERNEL, 4), ALL(SYSRET, KERNEL + 4, 1),
	    ALL(NOPS, 0x8008, 1) },
	  T0 "b83b000000 1000+5 0f05 1005+2 event:1007 " NOP4(
	      K "000") "480f07 to:8000 ijmp@" K "0004+3 back:" K "0004 xfer:1007 90 8000+1 " T5
		       "b827000000 8001+5 0f05 8006+2 event:8008 " NOP4(
			   K "000") "480f07 to:8008 ijmp@" K "0004+3 back:" K "0004 90 8008+1 " },
	{ "a gap from the kernel's code to the program's, which goes on behind the call",
	  { SLICE(3, 7, 1, 5000), ALL(SYS, 0x1000, 2), ALL(NOPS, KERNEL, 4), GAP(OVERFLOW, 0),
	    ALL(NOPS, 0x1007, 1) },
	  T0 "b827000000 1000+5 0f05 1005+2 event:1007 " NOP4(K "000") T5
	  "win:1 back:1007 90 1007+1 " },
	{ "a gap from the kernel's code to the program's, elsewhere",
	  { SLICE(3, 7, 1, 5000), ALL(SYS, 0x1000, 2), ALL(NOPS, KERNEL, 4), GAP(OVERFLOW, 0),
	    ALL(NOPS, 0x3000, 1) },
	  T0 "b827000000 1000+5 0f05 1005+2 event:1007 " NOP4(K "000") T5
	  "win:1 back:1007 xfer:1007 90 3000+1 " },
	{ "the kernel at the end",
	  { SLICE(3, 7, 1, 5000), ALL(SYS, 0x1000, 2), ALL(NOPS, KERNEL, 4) },
	  T0 "b827000000 1000+5 0f05 1005+2 event:1007 " NOP4(K "000") "back:1007 " },
	{ "the kernel first, then a gap in it",
	  { SLICE(3, 7, 1, 5000), ALL(SYSRET, KERNEL + 4, 1), ALL(SYS, 0x1000, 2),
	    ALL(NOPS, KERNEL, 4), GAP(OVERFLOW, 0), ALL(SYSRET, KERNEL + 4, 1),
	    ALL(NOPS, 0x1007, 1) },
	  T5 "win:0 event:1000 sym:0 480f07 to:1000 ijmp@" K "0004+3 back:" K
	     "0004 b827000000 1000+5 0f05 1005+2 event:1007 " NOP4(K "000") T5
	  "win:1 to:1007 ijmp@" K "0004+3 back:" K "0004 90 1007+1 " },
};

static void with_kernel(void **state)
{
	const struct ptd_info info = { .clock = PTD_CLOCK_NS };

	(void)state;
	for (size_t i = 0; i < 2 * ARRAY_LEN(kernel_rows); i++) {
		_cleanup_(freep) char *path = make_path(), *expected = NULL;
		struct sink *sink = NULL;

		print_message("  %s\n", kernel_rows[i / 2].name);
		assert_int_equal(sink_open(&sink_drmemtrace, path, &info, whole_system, &sink), 0);
		assert_int_equal(feed(sink, kernel_rows[i / 2].steps, i % 2), 0);
		assert_int_equal(sink_finish(sink, NULL), 0);
		assert_null(sink_omission(sink));
		sink_free(sink);
		assert_true(asprintf(&expected,
				     "v7 version:7 filetype:40344 tid:7 pid:5 line:64 "
				     "chunk:10000000 page:4096 %s" TAIL,
				     kernel_rows[i / 2].expected) > 0);
		check_file(path, "drmemtrace.a_out.7.0000.trace.zip", expected);
	}
}

/* What an instruction names relative to rip: it is read or written behind the instruction, by its
 * address and size, also where records are copied. Other addresses are not known. */
static void addresses(void **state)
{
	static const char *const options[] = { "func-markers=none", "addresses", NULL };
	static const struct step steps[] = { SLICE(3, 7, 1, 5000),
					     ALL(DATA, 0x1000, 4),
					     ALL(IJMP, 0x1015, 1),
					     ALL(DATA, 0x1000, 4),
					     ALL(IJMP, 0x1015, 1),
					     ALL(DATA, 0x1000, 2),
					     {} };
	const struct ptd_info info = { .clock = PTD_CLOCK_NS };

	(void)state;
	for (int whole = 0; whole < 2; whole++) {
		_cleanup_(freep) char *path = make_path();
		struct sink *sink = NULL;

		assert_int_equal(sink_open(&sink_drmemtrace, path, &info, options, &sink), 0);
		assert_int_equal(feed(sink, steps, whole), 0);
		assert_int_equal(sink_finish(sink, NULL), 0);
		sink_free(sink);
		check_file(
		    path, "drmemtrace.a_out.7.0000.trace.zip",
		    "v7 version:7 filetype:340 tid:7 pid:5 line:64 chunk:10000000 page:4096 " T0
		    "8b0510000000 1000+6 read@1016+4 890520000000 1006+6 write@102c+4 "
		    "48ff05f0ffffff 100c+7 read@1003+8 write@1003+8 8b03 1013+2 "
		    "ffe0 to:1000 ijmp@1015+2 1000+6 read@1016+4 1006+6 write@102c+4 "
		    "100c+7 read@1003+8 write@1003+8 1013+2 to:1000 ijmp@1015+2 "
		    "1000+6 read@1016+4 1006+6 write@102c+4 " TAIL);
	}
}

/* --- many threads, other clocks ------------------------------------------------------------ */

static void feed_all(const char *path, enum ptd_clock clock, int64_t offset,
		     const struct step *steps)
{
	struct sink *sink = open_sink(path, clock, offset);

	assert_int_equal(feed(sink, steps, true), 0);
	assert_int_equal(sink_finish(sink, NULL), 0);
	assert_null(sink_free(sink));
}

/* Return: how many files of threads there are. */
static size_t count_files(const char *path)
{
	_cleanup_(freep) char *trace = NULL;
	size_t n = 0;
	DIR *dir;

	assert_true(asprintf(&trace, "%s/trace", path) > 0);
	dir = opendir(trace);
	assert_non_null(dir);
	for (const struct dirent *entry; (entry = readdir(dir));)
		n += strncmp(entry->d_name, "drmemtrace.", 11) == 0;
	closedir(dir);
	return n;
}

static void omission(void **state)
{
	static const struct step steps[] = {
		SLICE(3, 7, 1, 5000),  ALL(NOP32, 0x1000, 1), ASYNC(0x1001),
		ALL(NOP32, 0x2000, 1), { .kind = END },
	};
	_cleanup_(freep) char *path = make_path();
	struct sink *sink = open_sink(path, PTD_CLOCK_NS, 0);

	(void)state;
	assert_null(sink_omission(sink));
	assert_int_equal(feed(sink, steps, true), 0);
	assert_int_equal(sink_finish(sink, NULL), 0);
	assert_string_equal(sink_omission(sink),
			    "2 instructions of 32-bit or 16-bit code are not in it: the format is "
			    "that of 64-bit programs");
	assert_null(sink_free(sink));
	assert_int_equal(count_files(path), 0);
}

static void two_threads(void **state)
{
	static const struct step steps[] = {
		SLICE(3, 7, 1, 5000),
		ALL(COND, 0x1000, 2),
		SLICE(3, 8, 1, 6000),
		ALL(COND, 0x1000, 2),
		ALL(NOP, 0x1007, 1),
		SLICE(4, 7, 1, 7000),
		PART(NOPS, 0x1100, 0, 2, 0),
		SLICE(0, 9, 1, 8000),
		GAP(NO_SYNC, 0),
		{ .kind = END },
	};
	_cleanup_(freep) char *path = make_path();

	(void)state;
	feed_all(path, PTD_CLOCK_NS, 0, steps);
	check_file(path, "drmemtrace.a_out.7.0000.trace.zip",
		   HEADER T0 "90 1000+1 0f84f9000000 taken@1001+6 90 1100+1 "
			     "t:7 cpu:4 90 1101+1 " TAIL);
	check_file(
	    path, "drmemtrace.a_out.8.0000.trace.zip",
	    "v7 version:7 filetype:344 tid:8 pid:5 line:64 chunk:10000000 page:4096 "
	    "t:6 cpu:3 win:0 sym:0 90 1000+1 0f84f9000000 untaken@1001+6 90 1007+1 exit:8 footer");
	/* Nothing ran in the third. */
	assert_int_equal(count_files(path), 2);
}

static void thread_names(void **state)
{
	static const struct {
		uint32_t pid, tid;
		const char *comm, *file, *ids, *exit;
	} threads[] = {
		{ 5, 7, "a/b. c", "drmemtrace.a_b__c.7.0000.trace.zip", "tid:7 pid:5", "7" },
		{ 6, 7, "a/b. c", "drmemtrace.a_b__c.7.0001.trace.zip", "tid:7 pid:6", "7" },
		{ 0, 0, "swapper", "drmemtrace.swapper.4294967297.0000.trace.zip",
		  "tid:4294967297 pid:4294967296", "4294967297" },
		{ 9, 10, NULL, "drmemtrace.unknown.10.0000.trace.zip", "tid:10 pid:9", "10" },
		{ PTD_ID_UNKNOWN, PTD_ID_UNKNOWN, "",
		  "drmemtrace.unknown.8589934593.0000.trace.zip", "tid:8589934593 pid:8589934592",
		  "8589934593" },
		{ PTD_ID_UNKNOWN, 11, "x", "drmemtrace.x.11.0000.trace.zip",
		  "tid:11 pid:8589934592", "11" },
	};
	_cleanup_(freep) char *path = make_path();
	struct sink *sink = open_sink(path, PTD_CLOCK_NS, 0);
	const struct ptd_run run = { .block = &blocks[NOP], .base = 0x1000, .n = 1 };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(threads); i++) {
		const struct ptd_slice slice = { .id = i,
						 .cpu = 1,
						 .pid = threads[i].pid,
						 .tid = threads[i].tid,
						 .t0 = 1000,
						 .comm = threads[i].comm };

		assert_int_equal(
		    sink_batch(sink,
			       &(struct ptd_batch){ .slice = &slice, .runs = &run, .n_runs = 1 }),
		    0);
	}
	assert_int_equal(sink_finish(sink, NULL), 0);
	sink_free(sink);
	for (size_t i = 0; i < ARRAY_LEN(threads); i++) {
		_cleanup_(freep) char *expected = NULL;

		assert_true(asprintf(&expected,
				     "v7 version:7 filetype:344 %s line:64 chunk:10000000 "
				     "page:4096 t:1 cpu:1 win:0 sym:0 90 1000+1 exit:%s footer",
				     threads[i].ids, threads[i].exit) > 0);
		check_file(path, threads[i].file, expected);
	}
	assert_int_equal(count_files(path), ARRAY_LEN(threads));
}

static void clocks(void **state)
{
	static const struct step steps[] = {
		SLICE(3, 7, 1, 7000), PART(NOPS, 0x1000, 0, 1, 0),
		SLICE(3, 7, 1, 9000), PART(NOPS, 0x1000, 1, 1, 9500),
		{ .kind = END },
	};
	static const struct {
		enum ptd_clock clock;
		int64_t offset;
		uint64_t first, second;
	} clock_rows[] = {
		{ PTD_CLOCK_NS, 0, EPOCH + 7, EPOCH + 9 },
		{ PTD_CLOCK_NS, 1700000000000000000, EPOCH + 1700000000000007,
		  EPOCH + 1700000000000009 },
		{ PTD_CLOCK_NS, -8000, EPOCH, EPOCH + 1 },
		{ PTD_CLOCK_TSC, 0, 1, 2501 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(clock_rows); i++) {
		_cleanup_(freep) char *path = make_path(), *expected = NULL;

		feed_all(path, clock_rows[i].clock, clock_rows[i].offset, steps);
		assert_true(asprintf(&expected,
				     HEADER "t:%" PRId64 " cpu:3 win:0 sym:0 90 1000+1 t:%" PRId64
					    " cpu:3 90 1001+1 " TAIL,
				     (int64_t)(clock_rows[i].first - EPOCH),
				     (int64_t)(clock_rows[i].second - EPOCH)) > 0);
		check_file(path, "drmemtrace.a_out.7.0000.trace.zip", expected);
	}
}

/* More threads than descriptors; each is in a handler whose marker is corrected at the end. */
static void many_threads(rlim_t limit_fds)
{
	enum { N = MEMTRACE_OUT_OPEN_MAX + 44 };
	_cleanup_(freep) char *path = make_path();
	struct sink *sink = open_sink(path, PTD_CLOCK_NS, 0);
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &(struct rlimit){ limit_fds, limit.rlim_max }),
			 0);
	for (uint32_t pass = 0; pass < 2; pass++)
		for (uint32_t tid = 1; tid <= N; tid++) {
			const struct step enter[] = { SLICE(0, tid, 1, 5000),
						      ALL(SYS, 0x1000, 2),
						      OFF,
						      ALL(NOP, 0x2000, 1),
						      { .kind = END } };
			const struct step leave[] = { SLICE(0, tid, 1, 5000),
						      ALL(SIGRET, 0x2001, 2),
						      OFF,
						      PART(SYS, 0x1000, 1, 1, 0),
						      { .kind = END } };

			assert_int_equal(feed(sink, pass ? leave : enter, true), 0);
		}
	assert_int_equal(sink_finish(sink, NULL), 0);
	sink_free(sink);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(count_files(path), N);
	for (uint32_t tid = 1; tid <= N; tid++) {
		_cleanup_(freep) char *file = NULL, *expected = NULL;

		assert_true(asprintf(&file, "drmemtrace.a_out.%u.0000.trace.zip", tid) > 0);
		assert_true(
		    asprintf(
			&expected,
			"v7 version:7 filetype:344 tid:%u pid:5 line:64 "
			"chunk:10000000 page:4096 t:5 cpu:0 win:0 sym:0 b827000000 1000+5 0f05 "
			"1005+2 sig:1005 t:5 cpu:0 90 2000+1 48c7c00f000000 2001+7 "
			"0f05 2008+2 t:5 cpu:0 xfer:200a 1005+2 exit:%u footer",
			tid, tid) > 0);
		check_file(path, file, expected);
	}
}

static void more_threads_than_files(void **state)
{
	(void)state;
	many_threads(MEMTRACE_OUT_OPEN_MAX + 32);
	many_threads(64);
}

/* --- symbols and functions ----------------------------------------------------------------- */

#define S(offset_, size_, class_, symbol_)                                         \
	{                                                                          \
		.offset = (offset_), .size = (size_), .iclass = PTD_INSN_##class_, \
		.symbol = (symbol_)                                                \
	}
#define IN(object_, address_, id_, target_, code, ...)                                   \
	{                                                                                \
		.id = (id_), .n_insns = ARRAY_LEN(((struct ptd_insn[]){ __VA_ARGS__ })), \
		.size = sizeof(code) - 1, .mode = 64, .bytes = (const uint8_t *)(code),  \
		.insns = (const struct ptd_insn[]){ __VA_ARGS__ }, .target = (target_),  \
		.object = &objects[object_], .address = (address_),                      \
	}
#define AT(block_, base_)                                                                          \
	{                                                                                          \
		.kind = PIECE,                                                                     \
		.run = { .block = &named[block_], .base = (base_), .n = (block_) == JIT ? 1 : 2 }, \
	}

enum { MAIN, RETURN, BACK, TAIL_JUMP, CUT, JIT };

static const struct ptd_object objects[] = {
	{ .name = "/opt/a\tb/demo", .build_id = { 0xab, 0x01 }, .build_id_size = 2 },
	{ .id = 1, .name = "[jit]" },
};
static const struct ptd_jit_note note = { .t = 9000, .address = 0x7000, .size = 3, .index = 12 };
static const struct ptd_symbol symbols[] = {
	{ .name = "" },
	{ .name = "main", .address = 0x1000, .size = 13 },
	{ .name = "f(int, long)", .address = 0x2000 },
	{ .name = "g", .address = 0x3000, .size = 5, .is_plt = true },
	{ .name = "JS:~x", .address = 0x50, .jit = &note },
	{ .name = "unused" },
};
static const struct ptd_symbol *const symbols_by_id[] = {
	&symbols[0], &symbols[1], &symbols[2], &symbols[3], &symbols[4], &symbols[5],
};

/* main calls g, which leads to f; f returns to main, which begins anew. */
static const struct ptd_block named[] = {
	[MAIN] =
	    IN(0, 0x1000, 0, 0x2000, "\x90\xe8\xfa\x1f\0\0", S(0, 1, OTHER, 1), S(1, 5, CALL, 1)),
	[RETURN] = IN(0, 0x2000, 1, 0, "\x90\xc3", S(0, 1, OTHER, 2), S(1, 1, RETURN, 2)),
	[BACK] = IN(0, 0x1006, 2, -6, "\x90\xeb\xf7", S(0, 1, OTHER, 1), S(1, 2, JUMP, 1)),
	[TAIL_JUMP] = IN(0, 0x3000, 3, -0x1000, "\x90\xe9\xfa\xef\xff\xff", S(0, 1, OTHER, 3),
			 S(1, 5, JUMP, 3)),
	[CUT] = IN(0, 0x1006, 4, 0, "\x90\xc3", S(0, 1, OTHER, 1), S(1, 1, RETURN, 2)),
	[JIT] = IN(1, 0x51, 5, 0, "\x90", S(0, 1, OTHER, 4)),
};

/* Write @steps, with symbols, to the new directory @path. */
static void feed_named(const char *path, const struct step *steps, bool whole,
		       const char *const *options)
{
	const struct ptd_info info = { .clock = PTD_CLOCK_NS };
	struct sink *sink = NULL;

	assert_int_equal(sink_open(&sink_drmemtrace, path, &info, options, &sink), 0);
	batch_symbols = symbols_by_id;
	n_batch_symbols = ARRAY_LEN(symbols_by_id);
	assert_int_equal(feed(sink, steps, whole), 0);
	n_batch_symbols = 0;
	assert_int_equal(sink_finish(sink, NULL), 0);
	sink_free(sink);
}

static void check_text(const char *path, const char *name, const char *expected)
{
	_cleanup_(freep) char *file = NULL;
	char text[4096] = "";
	FILE *in;

	assert_true(asprintf(&file, "%s/%s", path, name) > 0);
	in = fopen(file, "re");
	assert_non_null(in);
	assert_true(fread(text, 1, sizeof(text) - 1, in) > 0);
	fclose(in);
	assert_string_equal(text, expected);
}

#define COLUMNS "id\tname\tobject\tbuild_id\taddress\tsize\tkind\tpid\tjit_index\tvalid_from\n"

/* The second time around, nothing is announced, so that records are copied. */
static void symbols_change(void **state)
{
	static const struct step steps[] = {
		SLICE(3, 7, 1, 5000), AT(MAIN, 0x1000), AT(TAIL_JUMP, 0x3000), AT(RETURN, 0x2000),
		AT(BACK, 0x1006),     AT(MAIN, 0x1000), AT(TAIL_JUMP, 0x3000), AT(RETURN, 0x2000),
		AT(CUT, 0x1006),      AT(MAIN, 0x1000), GAP(OVERFLOW, 0),      AT(JIT, 0x7001),
		{ .kind = END },
	};

	(void)state;
	for (int whole = 0; whole < 2; whole++) {
		_cleanup_(freep) char *path = make_path();

		feed_named(path, steps, whole, no_functions);
		check_file(path, "drmemtrace.a_out.7.0000.trace.zip",
			   HEADER T5 "win:0 sym:1 90 1000+1 e8fa1f0000 call@1001+5 "
				     "sym:3 90 3000+1 e9faefffff jmp@3001+5 "
				     "sym:2 90 2000+1 c3 to:1006 ret@2001+1 "
				     "sym:1 90 1006+1 ebf7 jmp@1007+2 "
				     "1000+1 call@1001+5 sym:3 3000+1 jmp@3001+5 sym:2 2000+1 "
				     "to:1006 ret@2001+1 "
				     "sym:1 90 1006+1 sym:2 c3 to:1000 ret@1007+1 "
				     "sym:1 90 1000+1 e8fa1f0000 call@1001+5 "
				     "win:1 sym:4 90 7001+1 " T5 TAIL);
		check_text(path, "aux/symbols.tsv",
			   COLUMNS "1\tmain\t/opt/a?b/demo\tab01\t1000\t13\telf\t-\t-\t-\n"
				   "3\tg\t/opt/a?b/demo\tab01\t3000\t5\tplt\t-\t-\t-\n"
				   "2\tf(int, long)\t/opt/a?b/demo\tab01\t2000\t0\telf\t-\t-\t-\n"
				   "4\tJS:~x\t[jit]\t-\t7000\t3\tjit\t5\t12\t11644473600000009\n");
	}
}

/* A thread ends, so its file is complete; another one has its number later. */
static void ended(void **state)
{
	static const struct step steps[] = {
		SLICE(3, 7, 1, 5000), AT(BACK, 0x1006), SLICE(3, 8, 1, 6000), AT(BACK, 0x1006),
		SLICE(3, 7, 1, 7000), AT(MAIN, 0x1000), { .kind = END },
	};
	const struct ptd_sideband exit = {
		.kind = PTD_SIDEBAND_EXIT, .pid = 5, .tid = 7, .t = 5500
	};
	_cleanup_(freep) char *path = make_path();
	struct sink *sink = open_sink(path, PTD_CLOCK_NS, 0);

	(void)state;
	assert_int_equal(sink_take_sideband(sink, &exit), 0);
	batch_symbols = symbols_by_id;
	n_batch_symbols = ARRAY_LEN(symbols_by_id);
	assert_int_equal(feed(sink, steps, false), 0);
	n_batch_symbols = 0;
	assert_int_equal(sink_finish(sink, NULL), 0);
	assert_null(sink_free(sink));
	check_file(path, "drmemtrace.a_out.7.0000.trace.zip",
		   HEADER T5 "win:0 sym:1 90 1006+1 ebf7 jmp@1007+2 " TAIL);
	check_file(path, "drmemtrace.a_out.7.0001.trace.zip",
		   HEADER "t:7 cpu:3 win:0 sym:1 90 1000+1 e8fa1f0000 call@1001+5 " TAIL);
}

/* A stay of another thread begins with its ids and the time; and so does one of the same thread
 * that was on another core meanwhile, but not one that goes on. */
static void core_sharded(void **state)
{
	static const struct step steps[] = {
		SLICE(3, 7, 1, 5000), AT(BACK, 0x1006), SLICE(3, 8, 1, 6000), AT(TAIL_JUMP, 0x3000),
		SLICE(3, 7, 1, 7000), AT(BACK, 0x1006), SLICE(4, 7, 1, 8000), AT(BACK, 0x1006),
		SLICE(3, 7, 1, 9000), AT(BACK, 0x1006), SLICE(3, 7, 1, 9500), AT(MAIN, 0x1000),
		{ .kind = END },
	};
	static const char *const options[] = { "core-sharded", NULL };
	static const char *const both[] = { "core-sharded", "whole-system", NULL };
	_cleanup_(freep) char *path = make_path(), *refused = make_path();
	struct ptd_info info = { .clock = PTD_CLOCK_NS };
	struct sink *sink = NULL;

	(void)state;
	feed_named(path, steps, false, options);
	check_file(path, "drmemtrace.core.000003.0000.trace.zip",
		   "v7 version:7 filetype:10344 tid:7 pid:5 line:64 chunk:10000000 page:4096 "
		   "t:5 cpu:3 win:0 sym:1 90 1006+1 ebf7 jmp@1007+2 "
		   "tid:8 pid:5 t:6 cpu:3 sym:3 90 3000+1 e9faefffff jmp@3001+5 "
		   "tid:7 pid:5 t:7 cpu:3 sym:1 1006+1 jmp@1007+2 "
		   "tid:7 pid:5 t:9 cpu:3 1006+1 jmp@1007+2 "
		   "90 1000+1 t:9 cpu:3 e8fa1f0000 call@1001+5 exit:7 footer");
	check_file(path, "drmemtrace.core.000004.0000.trace.zip",
		   "v7 version:7 filetype:10344 tid:7 pid:5 line:64 chunk:10000000 page:4096 "
		   "t:8 cpu:4 win:0 sym:1 90 1006+1 ebf7 jmp@1007+2 exit:7 footer");
	assert_int_equal(sink_open(&sink_drmemtrace, refused, &info, both, &sink), -EINVAL);
}

static void functions(void **state)
{
	static const struct step steps[] = {
		SLICE(3, 7, 1, 5000), AT(MAIN, 0x1000), AT(TAIL_JUMP, 0x3000), AT(RETURN, 0x2000),
		AT(BACK, 0x1006),     AT(MAIN, 0x1000), AT(TAIL_JUMP, 0x3000), AT(RETURN, 0x2000),
		AT(BACK, 0x1006),     { .kind = END },
	};
	static const struct {
		const char *option, *expected, *list;
	} function_rows[] = {
		{ NULL,
		  "sym:1 90 1000+1 e8fa1f0000 call@1001+5 func:1 call:1006 "
		  "sym:3 90 3000+1 e9faefffff jmp@3001+5 func:1 value:0 func:2 call:1006 "
		  "sym:2 90 2000+1 c3 to:1006 ret@2001+1 func:2 value:0 "
		  "sym:1 90 1006+1 ebf7 jmp@1007+2 "
		  "1000+1 call@1001+5 func:1 call:1006 "
		  "sym:3 3000+1 jmp@3001+5 func:1 value:0 func:2 call:1006 "
		  "sym:2 2000+1 to:1006 ret@2001+1 func:2 value:0 "
		  "sym:1 1006+1 jmp@1007+2 ",
		  "1,0,0x3000,demo!g\n2,0,0x2000,demo!f(int; long)\n" },
		{ "func-markers=f(*",
		  "sym:1 90 1000+1 e8fa1f0000 call@1001+5 "
		  "sym:3 90 3000+1 e9faefffff jmp@3001+5 func:2 call:1006 "
		  "sym:2 90 2000+1 c3 to:1006 ret@2001+1 func:2 value:0 "
		  "sym:1 90 1006+1 ebf7 jmp@1007+2 "
		  "1000+1 call@1001+5 sym:3 3000+1 jmp@3001+5 func:2 call:1006 "
		  "sym:2 2000+1 to:1006 ret@2001+1 func:2 value:0 "
		  "sym:1 1006+1 jmp@1007+2 ",
		  "2,0,0x2000,demo!f(int; long)\n" },
	};

	(void)state;
	for (size_t i = 0; i < 2 * ARRAY_LEN(function_rows); i++) {
		const char *const options[] = { function_rows[i / 2].option, NULL };
		_cleanup_(freep) char *path = make_path(), *expected = NULL;

		feed_named(path, steps, i % 2, options);
		assert_true(asprintf(&expected, "%s%swin:0 %s%s", HEADER, T5,
				     function_rows[i / 2].expected, TAIL) > 0);
		check_file(path, "drmemtrace.a_out.7.0000.trace.zip", expected);
		check_text(path, "aux/funclist.log", function_rows[i / 2].list);
	}
}

/* DynamoRIO's func_view looks at each thread alone, and warns of a return without an entry. */
static void stack_in_another_thread(void **state)
{
	static const struct ptd_function f = { .name = "f", .object = &objects[0] };
	static const struct ptd_call found[] = {
		{ .kind = PTD_CALL_ENTER, .function = &f, .run = 0 },
		{ .kind = PTD_CALL_ENTER, .function = &f, .run = 0 },
		{ .kind = PTD_CALL_LEAVE, .function = &f, .run = 1 },
		{ .kind = PTD_CALL_LEAVE, .function = &f, .run = 2 },
		{ .kind = PTD_CALL_ENTER, .function = &f, .run = 3 },
	};
	static const struct ptd_batch batch;
	const struct ptd_call_batch calls_found = { .batch = &batch,
						    .calls = found,
						    .n_calls = ARRAY_LEN(found) };
	const struct ptd_info info = { .clock = PTD_CLOCK_NS };
	struct memtrace_call_list first = {}, second = {};
	struct memtrace_calls calls;
	size_t next;

	(void)state;
	assert_int_equal(memtrace_calls_init(&calls, &info, NULL, false), 0);
	calls.found = &calls_found;
	assert_int_equal(memtrace_calls_take(&calls, 0, &first, &next), 0);
	assert_int_equal(first.items.n, 2);
	assert_int_equal(memtrace_calls_take(&calls, 1, &second, &next), 0);
	assert_int_equal(second.items.n, 0);
	assert_int_equal(memtrace_calls_take(&calls, 2, &first, &next), 0);
	assert_int_equal(first.items.n, 3);
	assert_int_equal(next, 3);
	vec_deinit(&first.items);
	vec_deinit(&second.items);
	memtrace_calls_deinit(&calls);
}

/* Write a file with three runs of four instructions, whose first chunk has @end of these. Return:
 * its text. */
static char *write_chunks(uint64_t end)
{
	const struct ptd_run run = { .block = &blocks[NOPS], .base = 0x1000, .n = 4 };
	const struct memtrace_clock clock = { .clock = PTD_CLOCK_NONE };
	_cleanup_(memtrace_code_freep) struct memtrace_code *code = memtrace_code_new(1);
	_cleanup_(freep) char *dir = make_path(), *path = NULL;
	_cleanup_(fd_closep) int fd = -1;
	struct memtrace_out_pool pool;
	struct memtrace_file file = {};
	size_t from;

	assert_int_equal(mkdir(dir, 0777), 0);
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(memtrace_out_pool_init(&pool, fd, NULL, false, NULL), 0);
	assert_int_equal(memtrace_file_create(&file, &pool, &clock, NULL, NULL, "x",
					      MEMTRACE_FILETYPE_USER, 5, 7),
			 0);
	memtrace_file_set_code(&file, code);
	file.chunk_end = end;
	file.chunk_start = end - MEMTRACE_CHUNK;
	assert_int_equal(memtrace_file_pair(&file, 0, 3), 0);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(memtrace_file_announce(&file, &run, &from), 0);
		assert_int_equal(memtrace_file_insns(&file, run.block, run.base, 0, 4, from), 0);
	}
	assert_int_equal(memtrace_file_finish(&file, 7), 0);
	assert_int_equal(memtrace_out_pool_flush(&pool), 0);
	memtrace_file_deinit(&file);
	memtrace_out_pool_deinit(&pool);
	assert_true(asprintf(&path, "%s/x.0000.trace.zip", dir) > 0);
	return print_file(path);
}

/* Take the first @n words off @text. */
static const char *skip_words(const char *text, size_t n)
{
	while (n-- > 0)
		text = strchr(text, ' ') + 1;
	return text;
}

#define PAIR "t:-11644473599999999 cpu:3 " /* timestamps without a clock begin at 1 */

/* A new chunk, which is a member, begins anywhere in a run; all bytes are in both. */
static void chunks(void **state)
{
	static const char *const expected[] = {
		NOP4("100") NOP4("100") NOP4("100"),
		NOP4("100") "1000+1 1001+1 1002+1 1003+1 " NOP4("100"),
	};

	(void)state;
	for (uint64_t end = 4; end <= 8; end++) {
		_cleanup_(freep) char *zip = write_chunks(end), *parts = NULL;
		const char *both = expected[end == 8];
		const char *second = end == 8 ? both + strlen(both) - strlen(NOP4("100"))
					      : skip_words(both, 2 * (size_t)end);

		/* What a reader counts: markers 12, 9, 10, 20, 18, 2, 3, 101, 21, and instructions.
		 */
		assert_true(asprintf(&parts,
				     HEADER PAIR "sym:0 %.*send:0 | ordinal:%" PRIu64 " " PAIR
						 "sym:0 %s" TAIL,
				     (int)(second - both), both, 9 + end, second) > 0);
		assert_string_equal(zip, parts);
	}
}

/* --- the schedule -------------------------------------------------------------------------- */

static char *print_schedule(const char *path, const char *file)
{
	_cleanup_(freep) char *name = NULL;
	struct unpacked u;
	char *text = NULL;
	size_t size, member = 0;
	FILE *f = open_memstream(&text, &size);

	assert_true(asprintf(&name, "%s/trace/%s", path, file) > 0);
	u = unpack(name);
	for (size_t i = 0; i < u.bytes.n; i += sizeof(struct memtrace_scheduled)) {
		struct memtrace_scheduled s;

		memcpy(&s, u.bytes.items + i, sizeof(s));
		if (u.names.n > 0 && (i == 0 || i == u.ends.items[member - 1]))
			fprintf(f, "%s: ", u.names.items[member++]);
		fprintf(f, "%" PRIu64 "@%" PRId64 "/%" PRIu64 "+%" PRIu64 " ", s.tid,
			(int64_t)(s.stamp - EPOCH), s.cpu, s.n_insns);
	}
	assert_int_equal(u.bytes.n % sizeof(struct memtrace_scheduled), 0);
	unpacked_deinit(&u);
	fclose(f);
	return text;
}

/* Stays of one thread that follow each other are one, in the order of time. */
static void schedule(void **state)
{
	static const struct step steps[] = {
		SLICE(3, 7, 1, 5000),  ALL(NOPS, 0x1000, 2),
		SLICE(3, 7, 1, 6000),  PART(NOPS, 0x1000, 2, 1, 0),
		SLICE(10, 8, 1, 6500), ALL(NOPS, 0x1000, 3),
		SLICE(10, 8, 1, 9000), PART(NOPS, 0x1000, 3, 1, 0),
		SLICE(3, 8, 1, 7000),  ALL(NOPS, 0x1000, 1),
		SLICE(3, 7, 1, 8000),  PART(NOPS, 0x1000, 3, 1, 0),
		{ .kind = END },
	};
	_cleanup_(freep) char *path = make_path(), *serial = NULL, *cpus = NULL;

	(void)state;
	feed_all(path, PTD_CLOCK_NS, 0, steps);
	serial = print_schedule(path, "serial_schedule.bin.gz");
	assert_string_equal(serial, "7@5/3+0 8@6/10+0 7@8/3+3 8@9/3+4 ");
	cpus = print_schedule(path, "cpu_schedule.bin.zip");
	assert_string_equal(cpus, "3: 7@5/3+0 8@9/3+4 10: 8@6/10+0 ");
}

/* Nothing is written of what is not remembered whole. */
static void long_schedule(void **state)
{
	struct memtrace_schedule s = {};

	(void)state;
	for (uint64_t i = 0; i <= MEMTRACE_SCHEDULED_MAX; i++) {
		memtrace_schedule_settle(&s, i);
		assert_int_equal(memtrace_schedule_add(&s, i, i, i, i), 0);
	}
	assert_true(s.is_too_long);
	assert_int_equal(s.items.n, 0);
	assert_int_equal(memtrace_schedule_write(&s, NULL), 0);
	memtrace_schedule_deinit(&s);
}

/* Of stays with many timestamps only the beginnings are needed: what is forgotten changes neither
 * file. */
static void long_stays(void **state)
{
	enum { STAY = 1000, N = MEMTRACE_SCHEDULED_MAX * 2 + 77 };
	struct memtrace_schedule s = {};
	uint64_t n = 0;

	(void)state;
	for (uint64_t i = 0; i < N; i++) {
		const uint64_t stay = i / STAY;

		if (i % STAY == 0)
			memtrace_schedule_settle(&s, 10 * i);
		/* Two threads of one CPU in turn, and one of another that goes on beside them. */
		assert_int_equal(memtrace_schedule_add(&s, 7 + stay % 2, 10 * i, 3, i), 0);
		if (i % 100 == 0)
			assert_int_equal(memtrace_schedule_add(&s, 9, 10 * i + 5, 4, i), 0);
	}
	assert_false(s.is_too_long);
	assert_in_range(s.items.n, N / STAY, MEMTRACE_SCHEDULED_MAX);
	for (size_t i = 0; i < s.items.n; i++) {
		const struct memtrace_scheduled *item = &s.items.items[i];

		if (item->cpu == 3 && item->n_insns % STAY == 0)
			assert_int_equal(item->n_insns, STAY * n++);
	}
	/* Of each stay the first one is there. */
	assert_int_equal(n, (N + STAY - 1) / STAY);
	memtrace_schedule_deinit(&s);
}

/* A reader's stack has no limit: when ours forgot the oldest, it must not take it for empty. */
static void frames(void **state)
{
	struct memtrace_frames f = {};

	(void)state;
	assert_true(memtrace_frames_empty(&f));
	for (uint64_t i = 0; i <= MEMTRACE_FRAMES_MAX; i++)
		assert_int_equal(
		    memtrace_frames_push(&f, &(struct memtrace_frame){ .pc = i, .restarted = i }),
		    0);
	assert_false(memtrace_frames_deeper(&f, 0));
	assert_true(memtrace_frames_deeper(&f, 1));
	for (uint64_t i = MEMTRACE_FRAMES_MAX; i > 0; i--) {
		assert_int_equal(memtrace_frames_top(&f)->pc, i);
		memtrace_frames_pop(&f);
	}
	assert_null(memtrace_frames_top(&f));
	assert_false(memtrace_frames_empty(&f));
	memtrace_frames_deinit(&f);
}

/* --- errors -------------------------------------------------------------------------------- */

static void open_errors(void **state)
{
	const struct ptd_info info = { .clock = PTD_CLOCK_NS };
	_cleanup_(freep) char *path = make_path(), *file = NULL, *missing = NULL, *trace = NULL;
	struct sink *sink = (void *)0x1;
	int fd;

	(void)state;
	assert_true(asprintf(&file, "%s/file", path) > 0);
	assert_true(asprintf(&missing, "%s/no/such", path) > 0);
	assert_int_equal(mkdir(path, 0777), 0);
	/* An empty one will do, and one in which another sink has written nothing. */
	for (size_t i = 0; i < 2; i++) {
		sink = open_sink(path, PTD_CLOCK_NS, 0);
		sink_free(sink);
	}

	sink = (void *)0x1;
	assert_true(asprintf(&trace, "%s/trace/file", path) > 0);
	fd = open(trace, O_CREAT | O_WRONLY | O_CLOEXEC, 0666);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(sink_open(&sink_drmemtrace, path, &info, NULL, &sink), -ENOTEMPTY);
	assert_int_equal(unlink(trace), 0);
	assert_int_equal(sink_open(&sink_drmemtrace, NULL, &info, NULL, &sink), -EISDIR);
	assert_int_equal(sink_open(&sink_drmemtrace, missing, &info, NULL, &sink), -ENOENT);
	fd = open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0666);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(sink_open(&sink_drmemtrace, path, &info, NULL, &sink), -ENOTEMPTY);
	assert_int_equal(sink_open(&sink_drmemtrace, file, &info, NULL, &sink), -EEXIST);
	assert_ptr_equal(sink, (void *)0x1);
}

static void write_errors(void **state)
{
	static const struct step steps[] = {
		SLICE(3, 7, 1, 7000), ALL(NOPS, 0x1000, 4), ALL(IJMP, 0x1004, 1), { .kind = END }
	};
	const struct rlimit small = { 4096, RLIM_INFINITY };
	_cleanup_(freep) char *path = make_path();
	struct sink *sink = open_sink(path, PTD_CLOCK_NS, 0);
	struct rlimit before;
	int r = 0;

	(void)state;
	/* Stands for a full disk. */
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(
	    setrlimit(RLIMIT_FSIZE, &(struct rlimit){ small.rlim_cur, before.rlim_max }), 0);
	for (int i = 0; i < 1000000 && r == 0; i++)
		r = feed(sink, steps, true);
	assert_int_equal(r, -EFBIG);
	assert_int_equal(sink_finish(sink, NULL), -EFBIG);
	assert_null(sink_free(sink));
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
}

/* What is written stays within the room, and uses it but for less than a piece. */
static void room(void **state)
{
	static const struct step steps[] = {
		SLICE(3, 7, 1, 7000), ALL(NOPS, 0x1000, 4), ALL(IJMP, 0x1004, 1), { .kind = END }
	};
	const struct ptd_info info = { .clock = PTD_CLOCK_NS };
	_cleanup_(freep) char *path = make_path(), *file = NULL;
	const uint64_t all = 16384;
	uint64_t left = all;
	struct sink_config config = { .info = &info, .room = &left, .options = no_functions };
	struct sink *sink = NULL;
	struct stat st;
	int r = 0;

	(void)state;
	config.fd = sink_target_open(&sink_drmemtrace, path);
	assert_true(config.fd >= 0);
	assert_int_equal(sink_new(&sink_drmemtrace, &config, &sink, NULL), 0);
	for (int i = 0; i < 1000000 && r == 0; i++)
		r = feed(sink, steps, true);
	assert_int_equal(r, -EFBIG);
	assert_int_equal(sink_finish(sink, NULL), -EFBIG);
	assert_null(sink_free(sink));
	assert_true(asprintf(&file, "%s/trace/drmemtrace.a_out.7.0000.trace.zip.part", path) > 0);
	assert_int_equal(stat(file, &st), 0);
	assert_int_equal(st.st_size, all - left);
	assert_true(left < all / 2);
}

struct writing {
	const struct step *steps;
	char *path;
	char *expected;
};

static int write_trace(void *userdata)
{
	const struct ptd_info info = { .clock = PTD_CLOCK_NS };
	struct writing *w = userdata;
	struct sink *sink = NULL;
	char command[TEMPDIR_SIZE + 32];
	int r;

	(void)snprintf(command, sizeof(command), "rm -rf %s", w->path);
	assert_int_equal(system(command), 0);
	r = sink_open(&sink_drmemtrace, w->path, &info, no_functions, &sink);
	if (r < 0) {
		assert_null(sink);
		return r;
	}
	r = feed(sink, w->steps, false);
	if (r == 0)
		r = sink_finish(sink, NULL);
	sink_free(sink);
	return r;
}

static void is_written(void *userdata)
{
	const struct writing *w = userdata;

	check_file(w->path, "drmemtrace.a_out.7.0000.trace.zip", w->expected);
}

static void calls_that_fail(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i += 3) {
		struct writing w = {
			.steps = rows[i].steps,
			.path = make_path(),
		};

		assert_true(asprintf(&w.expected, "%s%s%s", HEADER, rows[i].expected, TAIL) > 0);
		print_message("  %s\n", rows[i].name);
		failing_each(write_trace, is_written, &w);
		free(w.expected);
		free(w.path);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_thread),
		cmocka_unit_test(two_threads),
		cmocka_unit_test(omission),
		cmocka_unit_test(thread_names),
		cmocka_unit_test(clocks),
		cmocka_unit_test(more_threads_than_files),
		cmocka_unit_test(chunks),
		cmocka_unit_test(frames),
		cmocka_unit_test(schedule),
		cmocka_unit_test(long_schedule),
		cmocka_unit_test(long_stays),
		cmocka_unit_test(symbols_change),
		cmocka_unit_test(functions),
		cmocka_unit_test(stack_in_another_thread),
		cmocka_unit_test(core_sharded),
		cmocka_unit_test(ended),
		cmocka_unit_test(with_kernel),
		cmocka_unit_test(addresses),
		cmocka_unit_test(open_errors),
		cmocka_unit_test(write_errors),
		cmocka_unit_test(room),
		cmocka_unit_test(signal_before_int3),
		cmocka_unit_test(calls_that_fail),
	};

	return cmocka_run_group_tests(tests, make_base, remove_base);
}
