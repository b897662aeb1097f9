/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Two streams are compared: what is no difference, and what is said of each that is one. */

#include "decoder/cmd/verify.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ptd/decode.h"

#define BASE 0x1000

static const struct ptd_object object = { .name = "/bin/demo" };
static const struct ptd_symbol no_symbol = { .name = "" }, main_symbol = { .name = "main" };
static const struct ptd_symbol *const symbols[] = { &no_symbol, &main_symbol };

/* nop; nop; nop; syscall, and the same with another byte, and other lengths. */
static const uint8_t bytes[] = { 0x90, 0x90, 0x90, 0x0f, 0x05 };
static const uint8_t other_bytes[] = { 0x90, 0x91, 0x90, 0x0f, 0x05 };
static const struct ptd_insn insns[] = {
	{ .offset = 0, .size = 1, .symbol = 1 },
	{ .offset = 1, .size = 1, .symbol = 1 },
	{ .offset = 2, .size = 1 },
	{ .offset = 3, .size = 2, .iclass = PTD_INSN_SYSCALL },
};
static const struct ptd_block block = {
	.n_insns = 4, .size = 5, .mode = 64, .object = &object, .bytes = bytes, .insns = insns
};
static const struct ptd_block other_block = {
	.n_insns = 4, .size = 5, .mode = 64, .object = &object, .bytes = other_bytes, .insns = insns
};
static const struct ptd_block wide_block = {
	.n_insns = 4, .size = 5, .mode = 32, .object = &object, .bytes = bytes, .insns = insns
};

#define RUN_OF(of_block, at, first_insn, how_many)                                    \
	{                                                                             \
		.block = &(of_block), .base = BASE, .t = (at), .first = (first_insn), \
		.n = (how_many)                                                       \
	}
#define RUN(first_insn, how_many) RUN_OF(block, 7, first_insn, how_many)

/* One batch of a stream; up to two of them make it. */
struct batch {
	uint32_t cpu, pid, tid;
	struct ptd_run runs[3];
	size_t n_runs;
	struct ptd_mark marks[2];
	size_t n_marks;
};

struct stream {
	const struct batch *batches;
	size_t n, next;
	int failure; /* what comes behind them; 0: the end */
	struct ptd_slice slice;
	struct ptd_batch batch;
};

static int next(void *userdata, const struct ptd_batch **ret_batch)
{
	struct stream *s = userdata;
	const struct batch *b;

	if (s->next == s->n || s->batches[s->next].tid == 0)
		return s->failure ? s->failure : PTD_END;
	b = &s->batches[s->next++];
	s->slice = (struct ptd_slice){ .cpu = b->cpu, .pid = b->pid, .tid = b->tid };
	s->batch = (struct ptd_batch){ .slice = &s->slice,
				       .runs = b->runs,
				       .n_runs = b->n_runs,
				       .marks = b->marks,
				       .n_marks = b->n_marks,
				       .symbols = symbols,
				       .n_symbols = ARRAY_LEN(symbols) };
	*ret_batch = &s->batch;
	return 0;
}

/* Return: as verify_streams(); what it wrote is to be freed. */
static int compare(const struct batch *a, const struct batch *b, size_t n, int failure,
		   char **ret_text, uint64_t *ret_n_insns)
{
	struct stream both[] = { { .batches = a, .n = n },
				 { .batches = b, .n = n, .failure = failure } };
	const struct verify_stream streams[] = { { "one", next, &both[0] },
						 { "two", next, &both[1] } };
	size_t size;
	FILE *f = open_memstream(ret_text, &size);
	int r;

	assert_non_null(f);
	r = verify_streams(streams, f, ret_n_insns);
	fclose(f);
	return r;
}

#define ONE .cpu = 1, .pid = 10, .tid = 11

static const struct batch whole[2] = { { ONE, .runs = { RUN(0, 4) }, .n_runs = 1 } };

static void no_difference(void **state)
{
	static const struct batch rows[][2] = {
		{ { ONE, .runs = { RUN(0, 4) }, .n_runs = 1 } },
		{ { ONE, .runs = { RUN(0, 1), RUN(1, 2), RUN(3, 1) }, .n_runs = 3 } },
		{ { ONE, .runs = { RUN(0, 2) }, .n_runs = 1 },
		  { ONE, .runs = { RUN(2, 2) }, .n_runs = 1 } },
		{ { ONE }, { ONE, .runs = { RUN(0, 4) }, .n_runs = 1 } },
		{ { ONE, .runs = { RUN(0, 2), RUN(2, 2) }, .n_runs = 2,
		    .marks = { { .run = 1, .kind = PTD_MARK_CFE, .t = 7, .value = 1 },
			       { .run = 2, .kind = PTD_MARK_PEBS, .t = 9 } },
		    .n_marks = 2 } },
		{ { ONE, .runs = { RUN(0, 4) }, .n_runs = 1,
		    .marks = { { .run = 0, .kind = PTD_MARK_EVD, .t = 7 },
			       { .run = 1, .kind = PTD_MARK_TRIG, .t = 7 } },
		    .n_marks = 2 } },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		_cleanup_(freep) char *text = NULL;
		uint64_t n;

		assert_int_equal(compare(whole, rows[i], 2, 0, &text, &n), VERIFY_EQUAL);
		assert_int_equal(n, 4);
		assert_string_equal(text, "");
	}
}

#define BEFORE                                                                                     \
	"Both engines:\n  CPU 1, thread 10/11, time 7: 1000 main (/bin/demo)\none goes on with:\n" \
	"  CPU 1, thread 10/11, time 7: 1001 main (/bin/demo)\n"                                   \
	"  CPU 1, thread 10/11, time 7: 1002 [unknown] (/bin/demo)\n"                              \
	"  CPU 1, thread 10/11, time 7: 1003 [unknown] (/bin/demo)\n  the end\ntwo goes on "       \
	"with:\n"

static void differences(void **state)
{
	static const struct {
		const char *two; /* how the second stream goes on */
		struct batch batches[2];
	} rows[] = {
		{ "  the end\n", { { ONE, .runs = { RUN(0, 1) }, .n_runs = 1 } } },
		{ "  CPU 1, thread 10/11, time 7: 1002 [unknown] (/bin/demo)\n  the end\n",
		  { { ONE, .runs = { RUN(0, 1), RUN(2, 1) }, .n_runs = 2 } } },
		{ "  CPU 1, thread 10/11, time 8: 1001 main (/bin/demo)\n  the end\n",
		  { { ONE, .runs = { RUN(0, 1), RUN_OF(block, 8, 1, 1) }, .n_runs = 2 } } },
		{ "  CPU 1, thread 10/11, time 7: 1001 main (/bin/demo)\n  the end\n",
		  { { ONE, .runs = { RUN(0, 1), RUN_OF(other_block, 7, 1, 1) }, .n_runs = 2 } } },
		{ "  CPU 1, thread 10/11, time 7: 1001 main (/bin/demo)\n  the end\n",
		  { { ONE, .runs = { RUN(0, 1), RUN_OF(wide_block, 7, 1, 1) }, .n_runs = 2 } } },
		{ "  CPU 1, thread 10/12, time 7: 1001 main (/bin/demo)\n  the end\n",
		  { { ONE, .runs = { RUN(0, 1) }, .n_runs = 1 },
		    { .cpu = 1, .pid = 10, .tid = 12, .runs = { RUN(1, 1) }, .n_runs = 1 } } },
		{ "  CPU 2, thread 10/11, time 7: 1001 main (/bin/demo)\n  the end\n",
		  { { ONE, .runs = { RUN(0, 1) }, .n_runs = 1 },
		    { .cpu = 2, .pid = 10, .tid = 11, .runs = { RUN(1, 1) }, .n_runs = 1 } } },
		{ "  CPU 1, thread 10/11, time 9: gap, packets contradict the code, 5 bytes at 40, "
		  "1001\n"
		  "  the end\n",
		  { { ONE, .runs = { RUN(0, 1) }, .n_runs = 1,
		      .marks = { { .run = 1,
				   .kind = PTD_MARK_GAP,
				   .reason = PTD_GAP_BAD_FLOW,
				   .t = 9,
				   .ip = 0x1001,
				   .offset = 40,
				   .n_bytes = 5 } },
		      .n_marks = 1 } } },
		{ "  CPU 1, thread 10/11, time 7: cbr 20 0\n"
		  "  CPU 1, thread 10/11, time 7: 1001 main (/bin/demo)\n  the end\n",
		  { { ONE, .runs = { RUN(0, 1), RUN(1, 1) }, .n_runs = 2,
		      .marks = { { .run = 1, .kind = PTD_MARK_CBR, .t = 7, .value = 0x20 } },
		      .n_marks = 1 } } },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		_cleanup_(freep) char *text = NULL;
		char expected[1024];
		uint64_t n;

		(void)snprintf(expected, sizeof(expected), "%s%s", BEFORE, rows[i].two);
		assert_int_equal(compare(whole, rows[i].batches, 2, 0, &text, &n),
				 VERIFY_DIFFERENT);
		assert_int_equal(n, 1);
		assert_string_equal(text, expected);
	}
}

/* Of a mark everything counts. */
static void marks(void **state)
{
	static const struct ptd_mark good = { .kind = PTD_MARK_GAP,
					      .reason = PTD_GAP_NO_CODE,
					      .t = 7,
					      .ip = 0x2000,
					      .offset = 40,
					      .n_bytes = 5 };
	struct ptd_mark bad[] = { good, good, good, good, good, good, good, good };
	struct batch a = { ONE, .marks = { good }, .n_marks = 1 };

	(void)state;
	bad[1].kind = PTD_MARK_OUT_OF_SCOPE;
	bad[2].reason = PTD_GAP_BAD_FLOW;
	bad[3].ip++;
	bad[4].offset++;
	bad[5].n_bytes++;
	bad[6].value++;
	bad[7].extra++;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct batch b = { ONE, .marks = { bad[i] }, .n_marks = 1 };
		_cleanup_(freep) char *text = NULL;
		uint64_t n;

		assert_int_equal(compare(&a, &b, 1, 0, &text, &n),
				 i == 0 ? VERIFY_EQUAL : VERIFY_DIFFERENT);
		assert_int_equal(n, 0);
	}
}

/* What is shown is bounded. */
static void long_streams(void **state)
{
	struct batch a[20], b[20];
	_cleanup_(freep) char *text = NULL;
	size_t n_lines = 0;
	uint64_t n;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(a); i++)
		a[i] = b[i] = whole[0];
	b[10].runs[0].t = 8;
	assert_int_equal(compare(a, b, ARRAY_LEN(a), 0, &text, &n), VERIFY_DIFFERENT);
	assert_int_equal(n, 40);
	for (const char *p = text; (p = strchr(p, '\n')); p++)
		n_lines++;
	assert_int_equal(n_lines, 3 + 3 * 8);
}

static void a_stream_that_fails(void **state)
{
	_cleanup_(freep) char *text = NULL;
	uint64_t n;

	(void)state;
	assert_int_equal(compare(whole, whole, 2, -EIO, &text, &n), -EIO);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_difference),
		cmocka_unit_test(differences),
		cmocka_unit_test(marks),
		cmocka_unit_test(long_streams),
		cmocka_unit_test(a_stream_that_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
