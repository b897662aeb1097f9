/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Two streams of a program that is mapped at different addresses: which of their threads belong
 * together, where these first differ, and what is said of it. */

#include "decoder/sink/answer/diff.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "decoder/sink/answer/diff_state.h"

#define RUNS_MAX 7 /* of a batch: fewer than most paths have */

static const struct ptd_object demo = { .id = 0, .name = "/bin/demo" };
static const struct ptd_object jit = { .id = 1, .name = "[jit]" };
static const struct ptd_object moved = { .id = 2, .name = "/opt/other/demo" };
static const struct ptd_symbol none = { .name = "" }, main_ = { .name = "main", .address = 0x1000 },
			       other = { .name = "other", .address = 0x1010 },
			       jitted = { .name = "jitted", .address = 0x90000 },
			       jitted_elsewhere = { .name = "jitted", .address = 0xa0000 };
static const struct ptd_symbol *const symbols[] = { &none, &main_, &other, &jitted,
						    &jitted_elsewhere };

static const uint8_t jne[] = { 0x90, 0x75, 0x0d }, back[] = { 0x90, 0xeb, 0xf0 }, ret[] = { 0xc3 };
static const struct ptd_insn jne_insns[] = {
	{ .offset = 0, .size = 1, .symbol = 1 },
	{ .offset = 1, .size = 2, .symbol = 1, .iclass = PTD_INSN_JUMP_COND }
};
static const struct ptd_insn ret_insns[] = {
	{ .offset = 0, .size = 1, .symbol = 2, .iclass = PTD_INSN_RETURN }
};
static const struct ptd_insn jit_insns[][1] = { { { .size = 1, .symbol = 3 } },
						{ { .size = 1, .symbol = 4 } } };

/* Each by its letter. */
static const struct ptd_block x = { .id = 0,
				    .n_insns = 2,
				    .size = 3,
				    .mode = 64,
				    .object = &demo,
				    .address = 0x1000,
				    .bytes = jne,
				    .insns = jne_insns },
			      y = { .id = 1,
				    .n_insns = 2,
				    .size = 3,
				    .mode = 64,
				    .object = &demo,
				    .address = 0x1003,
				    .bytes = back,
				    .insns = jne_insns },
			      z = { .id = 2,
				    .n_insns = 1,
				    .size = 1,
				    .mode = 64,
				    .object = &demo,
				    .address = 0x1010,
				    .bytes = ret,
				    .insns = ret_insns },
			      j = { .id = 3,
				    .n_insns = 1,
				    .size = 1,
				    .mode = 64,
				    .object = &jit,
				    .address = 0x90000,
				    .bytes = ret,
				    .insns = jit_insns[0] },
			      k = { .id = 4,
				    .n_insns = 1,
				    .size = 1,
				    .mode = 64,
				    .object = &jit,
				    .address = 0xa0000,
				    .bytes = ret,
				    .insns = jit_insns[1] },
			      m = { .id = 5,
				    .n_insns = 2,
				    .size = 3,
				    .mode = 64,
				    .object = &moved,
				    .address = 0x1000,
				    .bytes = jne,
				    .insns = jne_insns };

/* main calls other, which does one thing or another, and jumps back to the call. */
static const uint8_t call_other[] = { 0xe8, 3, 0, 0, 0 }, jmp[] = { 0xeb, 0xf9 };
static const struct ptd_insn call_insns[] = { { .size = 5, .symbol = 1, .iclass = PTD_INSN_CALL } };
static const struct ptd_insn jmp_insns[] = { { .size = 2, .symbol = 1, .iclass = PTD_INSN_JUMP } };
static const struct ptd_insn other_insns[] = {
	{ .offset = 0, .size = 1, .symbol = 2 },
	{ .offset = 1, .size = 2, .symbol = 2, .iclass = PTD_INSN_JUMP_COND }
};
static const struct ptd_block c = { .id = 6,
				    .n_insns = 1,
				    .size = 5,
				    .mode = 64,
				    .object = &demo,
				    .address = 0x1008,
				    .bytes = call_other,
				    .insns = call_insns,
				    .target = 8 },
			      d = { .id = 7,
				    .n_insns = 1,
				    .size = 2,
				    .mode = 64,
				    .object = &demo,
				    .address = 0x100d,
				    .bytes = jmp,
				    .insns = jmp_insns,
				    .target = -5 },
			      q = { .id = 8,
				    .n_insns = 2,
				    .size = 3,
				    .mode = 64,
				    .object = &demo,
				    .address = 0x1010,
				    .bytes = jne,
				    .insns = other_insns,
				    .target = 0x10 },
			      r = { .id = 9,
				    .n_insns = 1,
				    .size = 1,
				    .mode = 64,
				    .object = &demo,
				    .address = 0x1013,
				    .bytes = ret,
				    .insns = ret_insns },
			      s = { .id = 10,
				    .n_insns = 1,
				    .size = 1,
				    .mode = 64,
				    .object = &demo,
				    .address = 0x1020,
				    .bytes = ret,
				    .insns = ret_insns };

/*
 * A path is written in letters: X nop, jne to Z; Y nop, jmp; Z ret; J and K code of a JIT compiler;
 * M the X of a file in another directory; C a call of Q, which falls through to R or jumps to S;
 * both return to D; x, only the nop of X, and = the jne behind it. '!' is an interruption, and '?'
 * a gap. A digit says how often the path begins anew, in thousands.
 */
struct thread {
	uint32_t tid;
	const char *comm;
	const char *path;
};

static const struct ptd_block *block_of(char letter)
{
	switch (letter) {
	case 'Y':
		return &y;
	case 'Z':
		return &z;
	case 'J':
		return &j;
	case 'K':
		return &k;
	case 'M':
		return &m;
	case 'C':
		return &c;
	case 'D':
		return &d;
	case 'Q':
		return &q;
	case 'R':
		return &r;
	case 'S':
		return &s;
	default:
		return &x;
	}
}

struct feeder {
	struct diff *diff;
	struct ptd_slice slice;
	struct ptd_run runs[RUNS_MAX];
	struct ptd_mark marks[RUNS_MAX];
	size_t n_runs, n_marks;
	uint64_t base, t;
	int result;
};

/* The call layer takes each mark before one of the runs that it is given, or behind the last. */
static void assert_marks_fit(const struct diff *diff)
{
	for (size_t i = 0; i < diff->fed_marks.n; i++)
		assert_true(diff->fed_marks.items[i].run <= diff->fed_runs.n);
}

static void feed(struct feeder *f)
{
	const struct ptd_batch batch = { .slice = &f->slice,
					 .runs = f->runs,
					 .n_runs = f->n_runs,
					 .marks = f->marks,
					 .n_marks = f->n_marks,
					 .symbols = symbols,
					 .n_symbols = ARRAY_LEN(symbols) };

	if (f->result == 0)
		f->result = diff_batch(f->diff, &batch);
	assert_true(f->result >= 0);
	assert_marks_fit(f->diff);
	f->n_runs = f->n_marks = 0;
}

static void feed_letter(struct feeder *f, char letter)
{
	const struct ptd_block *block = block_of(letter);

	if (letter == '!' || letter == '?') {
		f->marks[f->n_marks++] =
		    (struct ptd_mark){ .run = f->n_runs,
				       .kind = letter == '!' ? PTD_MARK_ASYNC : PTD_MARK_GAP };
	} else {
		f->runs[f->n_runs++] = (struct ptd_run){
			.block = block,
			.base = f->base + block->address,
			.t = f->t += 1000,
			.first = letter == '=',
			.n = letter == 'x' || letter == '=' ? 1 : block->n_insns,
		};
	}
	if (f->n_runs == RUNS_MAX || f->n_marks == RUNS_MAX)
		feed(f);
}

static void feed_thread(struct feeder *f, const struct thread *thread)
{
	size_t n = 1, i = 0;

	f->slice.pid = 10;
	f->slice.tid = thread->tid;
	f->slice.comm = thread->comm;
	for (const char *p = thread->path; *p; p++)
		if (*p >= '1' && *p <= '9')
			for (n = (size_t)(*p - '0') * 1000; i < n; i++)
				for (const char *again = thread->path; again < p; again++)
					feed_letter(f, *again);
		else if (!strpbrk(p, "123456789"))
			feed_letter(f, *p);
	feed(f);
}

/* What is written of two programs; it is to be freed. */
static char *compare_as(const struct diff_subject *subject, const struct thread *a, size_t n_a,
			const struct thread *b, size_t n_b)
{
	const struct thread *threads[] = { a, b };
	const size_t n[] = { n_a, n_b };
	const struct ptd_info info = { .clock = PTD_CLOCK_NS };
	const struct ptd_stats stats = {};
	struct sink_config config = { .info = &info };
	struct sink *sink;
	struct diff *diff;
	ssize_t size;
	char *text;
	int fd;

	assert_int_equal(diff_new(subject, &diff), 0);
	for (unsigned int pass = 0; pass < DIFF_PASSES && diff_needs(diff, pass); pass++)
		for (size_t side = 0; side < 2; side++) {
			struct feeder f = { .diff = diff, .base = side * 0x7000000 };

			assert_int_equal(diff_begin(diff, pass, (enum diff_side)side, &info), 0);
			for (size_t i = 0; i < n[side]; i++)
				feed_thread(&f, &threads[side][i]);
			assert_int_equal(diff_end(diff), 0);
		}
	config.fd = memfd_create("diff", MFD_CLOEXEC);
	config.userdata = diff;
	fd = fcntl(config.fd, F_DUPFD_CLOEXEC, 0);
	assert_int_equal(sink_new(&diff_ops, &config, &sink, NULL), 0);
	assert_int_equal(sink_finish(sink, &stats), 0);
	sink_free(sink);
	assert_null(diff_free(diff));
	text = calloc(1, 1 << 16);
	assert_non_null(text);
	size = pread(fd, text, (1 << 16) - 1, 0);
	assert_true(size > 0);
	close(fd);
	return text;
}

static char *compare(const struct thread *a, size_t n_a, const struct thread *b, size_t n_b)
{
	static const struct diff_subject all = { .names = { "one", "two" } };

	return compare_as(&all, a, n_a, b, n_b);
}

static void assert_says(const char *a, const char *b, const char *expected)
{
	const struct thread one = { 11, "me", a }, two = { 21, "me", b };
	_cleanup_(freep) char *text = compare(&one, 1, &two, 1);

	if (!strstr(text, expected))
		fail_msg("%s and %s:\n%s, not\n%s", a, b, text, expected);
}

#define SAME "Threads that are the same: 1\nThreads that differ: 0\n"

static void no_difference(void **state)
{
	(void)state;
	assert_says("XZXY", "XZXY", SAME "\nFunctions that differ: 0\n");
	assert_says("XZXYXZXYXZ", "x=Zx=YXZXYXZ", SAME);
	assert_says("XZXYXZ", "MZMYXZ", SAME);
	assert_says("XJXJ", "XKXK", SAME);
	/* Interrupted, but it goes on where it was. */
	assert_says("XYX", "x!=YX", SAME);
	assert_says("XZ9", "XZ9", SAME);
	assert_says("", "", SAME);
}

static void differences(void **state)
{
	(void)state;
	assert_says("XZXY", "XZXZ",
		    "me 10/11 of A and me 10/21 of B: the first 5 instructions are the same\n"
		    "    Then, behind 1001 main+0x1 (/bin/demo): jnz 0x1010\n"
		    "    A at 0.000003000 went on with 1003 main+0x3 (/bin/demo)\n"
		    "    B at 0.000003000 went to 7001010 other+0x0 (/bin/demo)\n");
	assert_says("XZX", "XZXZ",
		    "the first 5 instructions are the same\n"
		    "    Then, behind 1001 main+0x1 (/bin/demo): jnz 0x1010\n"
		    "    A at 0.000003000 ends\n"
		    "    B at 0.000003000 went to 7001010 other+0x0 (/bin/demo)\n");
	assert_says("x!ZX", "XZX",
		    "the first 1 instruction are the same\n"
		    "    Then, behind 1000 main+0x0 (/bin/demo): nop\n"
		    "    A at 0.000001000 was interrupted, and went on at 1010 other+0x0 "
		    "(/bin/demo)\n"
		    "    B at 0.000001000 went on with 7001001 main+0x1 (/bin/demo)\n");
	assert_says("X?YX", "XYX",
		    "    A at 0.000001000 has a gap, and goes on at 1003 main+0x3 (/bin/demo)\n"
		    "    B at 0.000001000 went on with 7001003 main+0x3 (/bin/demo)\n");
	assert_says("ZX", "XZ",
		    "the first 0 instructions are the same\n"
		    "    A at 0.000001000 went to 1010 other+0x0 (/bin/demo)\n"
		    "    B at 0.000001000 went to 7001000 main+0x0 (/bin/demo)\n");
	/* They meet again, and differ once more, and one does something longer. */
	assert_says("XYXZXZXZXYXZ", "XZXYXZXZXZXYXZ",
		    "    They go on alike behind 0 instructions of A and 5 of B\n"
		    "    More differences up to the end: 0; in all, 0 instructions of A and 5 of B "
		    "differ\n");
	assert_says("XZXY", "XZXZ",
		    "    They do not go on alike in the next 0 instructions of A "
		    "and 1 of B\n");
	assert_says("", "X", "the first 0 instructions are the same\n    A ends\n");
}

/*
 * The last common instruction ends a run or is inside one, and marks stand behind it and at the end
 * of the batch, of which the call layer has then taken a part.
 */
static void marks_behind_the_difference(void **state)
{
	static const char went_on[] =
	    "    A at 0.000003000 went on with 1003 main+0x3 (/bin/demo)\n"
	    "    B at 0.000003000 went to 7001010 other+0x0 (/bin/demo)\n"
	    "    Backtrace: main\n";

	(void)state;
	assert_says("XZXY!", "XZXZ!", went_on);
	assert_says("XZXYX?", "XZXZX?", went_on);
	assert_says("XZXY!XY!", "XZXZ!XY!", went_on);
	assert_says("x=Zx=Y!", "XZXZ!", "the first 5 instructions are the same\n");
	assert_says("XZX!ZXY?", "XZx!ZXY?", "the first 4 instructions are the same\n");
}

/* In the first, in a later, and at the end of a part that is compared at a time. */
static void long_paths(void **state)
{
	(void)state;
	assert_says("XZ8XY", "XZ8XZ",
		    "the first 24002 instructions are the same\n"
		    "    Then, behind 1001 main+0x1 (/bin/demo): jnz 0x1010\n"
		    "    A at 0.016001000 went on with 1003 main+0x3 (/bin/demo)\n"
		    "    B at 0.016001000 went to 7001010 other+0x0 (/bin/demo)\n");
	assert_says("XZXZXZ9XY", "XZXZXZ9XZ", "the first 81002 instructions are the same\n");
	assert_says("XZXZ4", "XZXZ5", "the first 24000 instructions are the same\n");
	assert_says("XZXZ8", "XZXZ9", "the first 48000 instructions are the same\n");
}

static void functions(void **state)
{
	(void)state;
	assert_says("XZXZXZXY", "XYYYZ",
		    "\nFunctions that differ: 2\n"
		    " instructions A               B      difference   entered A           B  "
		    "symbol (object)\n"
		    "             10               8              -2           4           1  "
		    "main (demo)\n"
		    "              3               1              -2           3           1  "
		    "other (demo)\n");
	assert_says("XJXJ", "XK",
		    "              2               1              -1           2           1  "
		    "jitted ([jit])\n");
}

/* By their names, and then in the order of their first instructions. */
static void threads(void **state)
{
	static const struct thread a[] = { { 11, "main", "XZ" },
					   { 12, "worker", "XZXZ" },
					   { 13, "worker", "XZXZXZ" },
					   { 14, "gone", "XYX" } };
	static const struct thread b[] = { { 21, "worker", "XZXZ" },
					   { 22, "main", "XZ" },
					   { 23, "worker", "XZXZXZ" } };
	_cleanup_(freep) char *text = compare(a, 4, b, 3), *swapped = compare(b, 3, a, 4);

	(void)state;
	assert_non_null(strstr(text, "A: one: 24 instructions, 4 threads\n"
				     "B: two: 18 instructions, 3 threads\n"
				     "Threads that are the same: 3\nThreads that differ: 0\n"
				     "\ngone 10/14 is in A only: 6 instructions\n"));
	assert_non_null(strstr(swapped, "\ngone 10/14 is in B only: 6 instructions\n"));
}

/* Of a program that calls the same function three times, which twice does the same. */
static void executions(void **state)
{
	static const struct thread t = { 11, "me", "CQRDCQSDCQRD" };
	static const struct {
		uint64_t a, b;
		const char *expected;
	} rows[] = {
		{ 1, 3,
		  "A: one, execution 1 of other: 3 instructions, 1 thread\n"
		  "B: one, execution 3 of other: 3 instructions, 1 thread\n" SAME
		  "\nFunctions that differ: 0\n" },
		{ 1, 2,
		  "me 10/11 of A and me 10/11 of B: the first 2 instructions are the same\n"
		  "    Then, behind 1011 other+0x1 (/bin/demo): jnz 0x1020\n"
		  "    A at 0.000002000 went on with 1013 other+0x3 (/bin/demo)\n"
		  "    B at 0.000006000 went to 7001020 other+0x10 (/bin/demo)\n"
		  "    Backtrace: other <- main\n" },
		{ 3, 4,
		  "B: one, execution 4 of other: 0 instructions, 0 threads\n"
		  "   there are 3 executions\n" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct diff_subject subject = { .names = { "one", "one" },
						      .function = "other",
						      .numbers = { rows[i].a, rows[i].b } };
		_cleanup_(freep) char *text = compare_as(&subject, &t, 1, &t, 1);

		if (!strstr(text, rows[i].expected))
			fail_msg("%s, not\n%s", text, rows[i].expected);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_difference),
		cmocka_unit_test(differences),
		cmocka_unit_test(marks_behind_the_difference),
		cmocka_unit_test(long_paths),
		cmocka_unit_test(functions),
		cmocka_unit_test(executions),
		cmocka_unit_test(threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
