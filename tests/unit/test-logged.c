/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Calls of a log: for each rule a stream, and the calls that the layer makes of it. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "ptd/calls.h"
#include "ptd/decode.h"
#include "tests/lib/callcheck.h"

#define LOGGED_MAX 64

static const struct ptd_symbol symbols[] = {
	{ .name = "" },
	{ .name = "f", .address = 0x1000 },
	{ .name = "g", .address = 0x2000 },
	{ .name = "h", .address = 0x3000 },
};

static const struct ptd_symbol *const by_id[] = { &symbols[0], &symbols[1], &symbols[2],
						  &symbols[3] };

/*
 * A stream: ">f" enters f, "<f" leaves it, "~f" leaves it by a jump, "^f" leaves the end of a chain
 * that began with f, "*f" enters and leaves it at once, "!" is a gap. Every one takes 10 ns.
 */
struct row {
	const char *stream;
	const char *calls; /* as show() writes them */
};

static const struct row rows[] = {
	{ ">f>g<g<f", "f 0 call; g 1 call; /g return 10; /f return 30; " },

	/* The depth does not go on below what is left. */
	{ ">f<f>g<g", "f 0 call; /f return 10; g 0 call; /g return 10; " },

	/* A jump out of a function. */
	{ ">f>g~g>h<h<f",
	  "f 0 call; g 1 call; /g tail call 10; h 1 tail call; /h return 10; /f return 50; " },

	/* It led to a function that logs no calls. */
	{ ">f>g~g<f", "f 0 call; g 1 call; /g tail call 10; /f return 30; " },

	/* A chain of jumps, logged by the end and by the beginning. */
	{ ">f~f>g~g>h<h", "f 0 call; /f tail call 10; g 0 tail call; /g tail call 10; "
			  "h 0 tail call; /h return 10; " },
	{ ">f^f>g^f>h<h", "f 0 call; /f tail call 10; g 0 tail call; /g tail call 10; "
			  "h 0 tail call; /h return 10; " },
	{ ">f>f^f>g^f>h<h<f",
	  "f 0 call; f 1 call; /f tail call 10; g 1 tail call; /g tail call 10; "
	  "h 1 tail call; /h return 10; /f return 70; " },

	/* Entered and left at once. */
	{ ">f*g<f", "f 0 call; g 1 call; /g return 0; /f return 20; " },
	{ ">f~f*g", "f 0 call; /f tail call 10; g 0 tail call; /g return 0; " },

	/* longjmp() or an exception. */
	{ ">f>g>h<f", "f 0 call; g 1 call; h 2 call; /h unwinding 10; /g unwinding 20; "
		      "/f return 30; " },

	/* f was open before the stream began. */
	{ ">g<g<f", "g 0 call; /g return 10; f -1 inference; /f return 20; " },
	{ "<f>g<g<h",
	  "f -1 inference; /f return 0; g -1 call; /g return 10; h -2 inference; /h return 30; " },
	{ ">g<f", "g 0 call; /g unwinding 10; f -1 inference; /f return 10; " },

	/* A gap; f is open before and behind it, g is not. */
	{ ">f>g!>h<h<f", "f 0 call; g 1 call; /g gap 10; /f gap 20; h 0 call; /h return 10; "
			 "f -1 resumption; /f return 20; " },
	{ ">f!<g", "f 0 call; /f gap 10; g -1 inference; /g return 0; " },

	/* The end. */
	{ ">f>g", "f 0 call; g 1 call; /g end 0; /f end 10; " },
	{ "", "" },
};

struct fixture {
	struct ptd_object object;
	struct ptd_slice slice;
	struct ptd_logged_call logged_calls[LOGGED_MAX];
	struct ptd_mark marks[LOGGED_MAX];
	struct ptd_logged logged;
	struct ptd_calls *calls;
	struct callcheck check;
	char text[2048];
	size_t n;
};

static const uint8_t kinds[] = { ['>'] = PTD_LOGGED_ENTER,
				 ['<'] = PTD_LOGGED_LEAVE,
				 ['~'] = PTD_LOGGED_TAIL,
				 ['^'] = PTD_LOGGED_TAIL_CHAIN,
				 ['*'] = PTD_LOGGED_POINT };

static void make(struct fixture *f, const char *stream)
{
	uint64_t t = 1000;

	f->slice = (struct ptd_slice){ .pid = 5, .tid = 7, .comm = "demo" };
	f->logged = (struct ptd_logged){ .batch = { .slice = &f->slice,
						    .marks = f->marks,
						    .symbols = by_id,
						    .n_symbols = ARRAY_LEN(by_id) },
					 .calls = f->logged_calls };
	for (const char *p = stream; *p; p++, t += 10) {
		if (*p == '!') {
			f->marks[f->logged.batch.n_marks++] = (struct ptd_mark){
				.kind = PTD_MARK_GAP, .run = f->logged.n_calls, .t = t
			};
			continue;
		}
		f->logged_calls[f->logged.n_calls++] =
		    (struct ptd_logged_call){ .t = t,
					      .object = &f->object,
					      .symbol = (uint32_t)(p[1] - 'f' + 1),
					      .kind = kinds[(uint8_t)p[0]] };
		p++;
	}
}

static void show(struct fixture *f, const struct ptd_call *call)
{
	int n;

	if (call->kind == PTD_CALL_ENTER)
		n = snprintf(f->text + f->n, sizeof(f->text) - f->n, "%s %d %s; ",
			     call->function->name, call->depth, ptd_call_how_name(call->how));
	else
		n = snprintf(f->text + f->n, sizeof(f->text) - f->n, "/%s %s %d; ",
			     call->function->name, ptd_call_how_name(call->how),
			     (int)call->t_total);
	assert_true(n > 0 && f->n + (size_t)n < sizeof(f->text));
	f->n += (size_t)n;
}

static void take(struct fixture *f)
{
	const struct ptd_call_batch *batch;
	int r;

	while ((r = ptd_calls_next(f->calls, &batch)) == 0) {
		assert_int_equal(callcheck_calls(&f->check, batch), 0);
		for (size_t i = 0; i < batch->n_calls; i++)
			show(f, &batch->calls[i]);
	}
	assert_int_equal(r, PTD_END);
}

/* The same whether the stream comes at once, or in batches of @n. */
static void run(const struct row *row, size_t n)
{
	struct fixture f = { .check = { .faults = stderr } };
	const struct ptd_frame *frames;
	size_t m = 0, n_frames;

	make(&f, row->stream);
	assert_int_equal(ptd_calls_new(NULL, &f.calls), 0);
	for (size_t i = 0; i < f.logged.n_calls; i += n) {
		const bool is_last = i + n >= f.logged.n_calls;
		struct ptd_logged piece = f.logged;

		piece.calls += i;
		piece.n_calls = is_last ? f.logged.n_calls - i : n;
		piece.batch.marks += m;
		piece.batch.n_marks = 0;
		while (m < f.logged.batch.n_marks && (is_last || f.marks[m].run < i + n)) {
			f.marks[m++].run -= i;
			piece.batch.n_marks++;
		}
		f.check.n_logged = piece.n_calls;
		assert_int_equal(ptd_calls_logged(f.calls, &piece), 0);
		take(&f);
		assert_int_equal(ptd_calls_stack(f.calls, 0, &frames, &n_frames), 0);
	}
	assert_int_equal(ptd_calls_finish(f.calls), 0);
	take(&f);
	callcheck_end(&f.check);
	assert_string_equal(f.text, row->calls);
	assert_int_equal(f.check.n_faults, 0);
	callcheck_deinit(&f.check);
	ptd_calls_free(f.calls);
}

static void rules(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		run(&rows[i], LOGGED_MAX);
		run(&rows[i], 1);
		run(&rows[i], 3);
	}
}

/* Functions beyond the depth that the layer has room for are left one by one, too. */
static void too_deep(void **state)
{
	const size_t n = PTD_CALLS_DEPTH_MAX + 10;
	struct ptd_logged_call *items = calloc(2 * n, sizeof(*items));
	const struct ptd_object object = {};
	const struct ptd_slice slice = { .pid = 5, .tid = 7 };
	const struct ptd_logged logged = {
		.batch = { .slice = &slice, .symbols = by_id, .n_symbols = ARRAY_LEN(by_id) },
		.calls = items,
		.n_calls = 2 * n
	};
	const struct ptd_call_batch *found;
	size_t n_entered = 0, n_left = 0;
	struct ptd_calls *calls;

	(void)state;
	assert_non_null(items);
	for (size_t i = 0; i < 2 * n; i++)
		items[i] =
		    (struct ptd_logged_call){ .t = i,
					      .object = &object,
					      .symbol = 1,
					      .kind = i < n ? PTD_LOGGED_ENTER : PTD_LOGGED_LEAVE };
	assert_int_equal(ptd_calls_new(NULL, &calls), 0);
	assert_int_equal(ptd_calls_logged(calls, &logged), 0);
	while (ptd_calls_next(calls, &found) == 0)
		for (size_t i = 0; i < found->n_calls; i++) {
			n_entered += found->calls[i].kind == PTD_CALL_ENTER;
			n_left += found->calls[i].how == PTD_CALL_BY_RETURN;
		}
	assert_int_equal(n_entered, PTD_CALLS_DEPTH_MAX);
	assert_int_equal(n_left, PTD_CALLS_DEPTH_MAX);
	assert_int_equal(ptd_calls_stats(calls)->n_too_deep, 10);
	ptd_calls_free(calls);
	free(items);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rules),
		cmocka_unit_test(too_deep),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
