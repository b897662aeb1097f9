/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The judge of the decoder's stream sees what is wrong with one: each row is a stream that is good
 * but for one thing, and what the judge says of it.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/follow.h"
#include "tests/lib/perfbuild.h"
#include "tests/lib/tempdir.h"

#define BASE   0x401000
#define MAPPED 100 /* when it was */

static const uint8_t code[] = {
	0x90,                         /* 0: nop */
	0x74, 0x02,                   /* 1: jz 5 */
	0xeb, 0x01,                   /* 3: jmp 6 */
	0xc3,                         /* 5: ret */
	0x0f, 0x05,                   /* 6: syscall */
	0xff, 0xe0,                   /* 8: jmp *%rax */
	0xe8, 0xf1, 0xff, 0xff, 0xff, /* 10: call 0 */
	0x90,                         /* 15: nop */
	0xf3, 0xa4,                   /* 16: rep movsb */
	0x90,                         /* 18: nop */
	0x66, 0xeb, 0xea,             /* 19: jmp 0; with the upper bits cut off in 32-bit code */
	0x66, 0x0f, 0x01, 0xcc,       /* 22: tdcall */
	0x0f, 0xaa,                   /* 26: rsm */
};

/* By offset: the size of the instruction there. */
static const uint8_t sizes[sizeof(code)] = {
	[0] = 1,  [1] = 2,  [3] = 2,  [5] = 1,  [6] = 2,  [8] = 2, [10] = 5,
	[15] = 1, [16] = 2, [18] = 1, [19] = 3, [22] = 4, [26] = 2
};

enum kind {
	KIND_END,
	KIND_RUN, /* @n instructions from @at */
	KIND_GAP,
	KIND_OFF,
	KIND_ASYNC, /* before @at */
	KIND_SLICE, /* another begins */
};

struct step {
	enum kind kind;
	int at;
	int n;
	enum {
		AS_IT_IS,
		OTHER_BYTE,
		OTHER_SIZE,
		OTHER_PLACE, /* where nothing is mapped */
		TOO_EARLY,
		MODE_32,
	} spoiled;
};

#define SPOILED(at, n, how)                \
	{                                  \
		KIND_RUN, (at), (n), (how) \
	}
#define RUN(at, n) SPOILED(at, n, AS_IT_IS)
#define GAP                              \
	{                                \
		KIND_GAP, 0, 0, AS_IT_IS \
	}
#define OFF                              \
	{                                \
		KIND_OFF, 0, 0, AS_IT_IS \
	}
#define ASYNC(at)                             \
	{                                     \
		KIND_ASYNC, (at), 0, AS_IT_IS \
	}
#define SLICE                              \
	{                                  \
		KIND_SLICE, 0, 0, AS_IT_IS \
	}

static const struct row {
	const char *name;
	struct step steps[8];
	const char *fault; /* NULL: all is good */
} rows[] = {
	{ "in a line", { RUN(0, 2) }, NULL },
	{ "a branch not taken", { RUN(0, 2), RUN(3, 1) }, NULL },
	{ "a branch taken", { RUN(0, 2), RUN(5, 1) }, NULL },
	{ "a branch to elsewhere",
	  { RUN(0, 2), RUN(6, 1) },
	  "0x401006: does not follow from the instruction at 0x401001" },
	{ "a jump", { RUN(3, 1), RUN(6, 1) }, NULL },
	{ "a jump not taken", { RUN(3, 1), RUN(5, 1) }, "0x401005: does not follow" },
	{ "a call", { RUN(10, 1), RUN(0, 1) }, NULL },
	{ "a call to elsewhere", { RUN(10, 1), RUN(15, 1) }, "0x40100f: does not follow" },
	{ "a return", { RUN(5, 1), RUN(15, 1) }, NULL },
	{ "an indirect jump", { RUN(8, 1), RUN(3, 1) }, NULL },
	{ "a system call", { RUN(6, 1), RUN(8, 1) }, NULL },
	{ "a jump with a prefix for 16 bits", { RUN(19, 1), RUN(0, 1) }, NULL },
	{ "the same in 32-bit code",
	  { SPOILED(19, 1, MODE_32), SPOILED(0, 1, MODE_32) },
	  "0x401000: does not follow from the instruction at 0x401013" },
	{ "a call of the TDX module that leaves", { RUN(22, 1), RUN(15, 1) }, NULL },
	{ "a call of the TDX module inside of a run", { RUN(22, 2) }, "is a branch inside" },
	{ "a return from system management", { RUN(26, 1), RUN(0, 1) }, NULL },
	{ "one left out", { RUN(0, 1), RUN(3, 1) }, "0x401003: does not follow" },
	{ "one twice", { RUN(0, 1), RUN(0, 1) }, "0x401000: does not follow" },
	{ "a repeated string instruction twice",
	  { RUN(16, 1), RUN(16, 1) },
	  "0x401010: does not follow" },
	{ "a gap", { RUN(0, 1), GAP, RUN(6, 1) }, NULL },
	{ "off", { RUN(0, 1), OFF, RUN(6, 1) }, NULL },
	{ "interrupted", { RUN(0, 1), ASYNC(1), RUN(6, 1) }, NULL },
	{ "interrupted elsewhere",
	  { RUN(0, 1), ASYNC(3), RUN(6, 1) },
	  "0x401003: is where it was interrupted, but does not follow" },
	{ "another slice", { RUN(0, 1), SLICE, RUN(6, 1) }, NULL },
	{ "a branch inside of a run", { RUN(3, 3) }, "0x401003: is a branch inside of a run" },
	{ "a conditional branch inside of a run", { RUN(0, 3) }, NULL },
	{ "another byte", { SPOILED(0, 2, OTHER_BYTE) }, "the bytes are not those of the file" },
	{ "another size", { SPOILED(15, 1, OTHER_SIZE) }, "0x40100f: has not 2 bytes" },
	{ "nothing mapped", { SPOILED(0, 1, OTHER_PLACE) }, "is in no file that was mapped" },
	{ "mapped later", { SPOILED(0, 1, TOO_EARLY) }, "is in no file that was mapped" },
	{ "mapped later, then mapped",
	  { SPOILED(5, 1, TOO_EARLY), RUN(5, 1) },
	  "is in no file that was mapped" },
};

/* What one step is made of. */
struct made {
	struct ptd_block block;
	struct ptd_insn insns[8];
	uint8_t bytes[32];
	struct ptd_run run;
};

static void make(const struct step *step, uint32_t id, struct made *m)
{
	size_t at = (size_t)step->at;

	*m = (struct made){ .block = { .id = id,
				       .mode = step->spoiled == MODE_32 ? 32 : 64,
				       .bytes = m->bytes,
				       .insns = m->insns },
			    .run = { .block = &m->block,
				     .base = BASE + at,
				     .t = step->spoiled == TOO_EARLY ? MAPPED - 1 : MAPPED + 1,
				     .n = (uint16_t)step->n } };
	memcpy(m->bytes, code + at, sizeof(code) - at);
	for (int i = 0; i < step->n; i++) {
		m->insns[i].offset = (uint16_t)(at - (size_t)step->at);
		m->insns[i].size = sizes[at];
		assert_true(sizes[at] > 0);
		at += sizes[at];
	}
	m->block.n_insns = (uint16_t)step->n;
	m->block.size = (uint16_t)(at - (size_t)step->at);
	if (step->spoiled == OTHER_BYTE)
		m->bytes[0] = 0x91;
	if (step->spoiled == OTHER_SIZE)
		m->insns[0].size++;
	if (step->spoiled == OTHER_PLACE)
		m->run.base += 1 << 20;
}

/* One batch for each step: a mark stands before nothing, then. */
static void judge(struct follow *follow, const struct row *row)
{
	struct ptd_slice slice = { .pid = 10, .tid = 10 };
	struct made made[8];

	for (uint32_t i = 0; i < 8 && row->steps[i].kind != KIND_END; i++) {
		const struct step *step = &row->steps[i];
		const struct ptd_mark mark = {
			.kind = step->kind == KIND_GAP   ? PTD_MARK_GAP
				: step->kind == KIND_OFF ? PTD_MARK_OFF
							 : PTD_MARK_ASYNC,
			.ip = step->kind == KIND_ASYNC ? BASE + (uint64_t)step->at : 0,
		};
		struct ptd_batch batch = { .slice = &slice };

		if (step->kind == KIND_SLICE) {
			slice.id++;
		} else if (step->kind == KIND_RUN) {
			make(step, i, &made[i]);
			batch.runs = &made[i].run;
			batch.n_runs = 1;
		} else {
			batch.marks = &mark;
			batch.n_marks = 1;
		}
		assert_int_equal(follow_batch(follow, &batch), 0);
	}
}

static void every_row(void **state)
{
	const struct ptd_info info = { .clock = PTD_CLOCK_NS };
	struct ptd_options options = { .size = sizeof(options) };
	char dir[TEMPDIR_SIZE], data[128], program[128];
	static uint8_t pages[3 * 4096]; /* perfbuild maps the third */
	static struct perfbuild b;

	(void)state;
	tempdir_make("follow", dir);
	snprintf(data, sizeof(data), "%s/data", dir);
	snprintf(program, sizeof(program), "%s/program", dir);
	memcpy(pages + 0x2000, code, sizeof(code));
	tempdir_put(dir, "program", pages, sizeof(pages));
	perfbuild_begin(&b, false);
	perfbuild_at(&b, MAPPED, 0, 10, 10);
	perfbuild_mmap2(&b, 10, 10, BASE, program);
	perfbuild_end(&b);
	tempdir_put(dir, "data", b.bytes, b.size);
	options.input = data;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		_cleanup_(follow_freep) struct follow *follow = NULL;
		_cleanup_(freep) char *text = NULL;
		size_t size;
		FILE *f = open_memstream(&text, &size);

		assert_int_equal(follow_new(&options, &info, f, &follow), 0);
		judge(follow, &rows[i]);
		fclose(f);
		if (rows[i].fault ? follow_n_faults(follow) == 0 || !strstr(text, rows[i].fault)
				  : follow_n_faults(follow) > 0)
			fail_msg("%s: \"%s\"", rows[i].name, text);
	}
	tempdir_remove(dir);
}

static void no_perf_data(void **state)
{
	const struct ptd_options empty = { .input = "/dev/null" },
				 other = { .input = "/proc/self/exe" };
	const struct ptd_info info = {};
	struct follow *follow;

	(void)state;
	assert_int_equal(follow_new(&empty, &info, stdout, &follow), -EINVAL);
	assert_int_equal(follow_new(&other, &info, stdout, &follow), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_row),
		cmocka_unit_test(no_perf_data),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
