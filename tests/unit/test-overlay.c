/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Calls of a log, laid over a stream: where each stands, and which are left out. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "decoder/calllog/calllog.h"
#include "decoder/overlay.h"

#define LANES_MAX 3
#define RUNS_MAX  16

/* A log whose lanes are texts: each word is a time, and one call. */
struct textlane {
	struct calllane lane; /* the first field */
	const char *text, *at;
};

struct textlog {
	struct calllog log; /* the first field */
	struct textlane lanes[LANES_MAX];
	size_t n_begun;
};

static int begin_lane(struct calllog *log, struct calllane *calllane, char **reterr_message)
{
	struct textlane *lane = (struct textlane *)calllane;

	(void)reterr_message;
	((struct textlog *)log)->n_begun++;
	lane->at = lane->text;
	lane->lane.ended = *lane->at == '\0';
	return 0;
}

/* Two calls at a time. */
static int read_lane(struct calllog *log, struct calllane *calllane, struct callpiece *piece,
		     char **reterr_message)
{
	struct textlane *lane = (struct textlane *)calllane;

	(void)log;
	(void)reterr_message;
	for (size_t i = 0; i < 2 && *lane->at; i++) {
		char *end;
		const uint64_t t = strtoull(lane->at, &end, 10);

		assert_ptr_not_equal(end, lane->at);
		lane->at = end + strspn(end, " ");
		if (vec_push(&piece->calls, { .t = t, .symbol = 1, .kind = PTD_LOGGED_POINT }) < 0)
			return -ENOMEM;
	}
	lane->lane.ended = *lane->at == '\0';
	return 0;
}

static void free_log(struct calllog *log)
{
	(void)log;
}

static const struct calllog_ops ops = { .begin = begin_lane, .read = read_lane, .free = free_log };

/*
 * Lanes 0 and 1 are of thread 9/7, lane 2 is of thread 9/8. The batches are "/"-separated: "t7" or
 * "t8" is the thread, a number the time of a run, and "g" and a number a gap. In what is expected,
 * "*" and a number is a call.
 */
static const struct row {
	const char *lanes[LANES_MAX];
	const char *batches, *expected;
	size_t n_unknown;
} rows[] = {
	/* Before the first run that is as late. What is before all runs, or behind, is left out. */
	{ { "5 10 15 20 25" }, "t7 10 20", "t7 *10 10 *15 *20 20", 1 },
	{ { "99 100 101" }, "t7 100 100 100", "t7 *100 100 100 100", 1 },
	{ { "" }, "t7 10 20", "t7 10 20", 1 },
	/* Behind the last run of those that have one time. */
	{ { "15" }, "t7 10 10 10 20", "t7 10 10 10 *15 20", 1 },
	/* Between two batches, of which the thread runs in another one, or in none. */
	{ { "12 22 32" }, "t7 10/t8 20/t7 30 40", "t7 10/t8 20/t7 *12 *22 30 *32 40", 0 },
	{ { "12" }, "t7 10/t7 g15/t7 20", "t7 10/t7 g15/t7 *12 20", 1 },
	/* A gap: beside it, by the time. */
	{ { "12 14" }, "t7 10 g13 20", "t7 10 *12 g13 *14 20", 1 },
	{ { "13" }, "t7 10 g13 20 g21", "t7 10 g13 *13 20 g21", 1 },
	/* Two lanes of one thread, and one of another. */
	{ { "11 13 15", "12 13 17", "14" },
	  "t7 10 20/t8 10 20",
	  "t7 10 *11 *12 *13 *13 *15 *17 20/t8 10 *14 20",
	  0 },
	/* Threads that are not known. */
	{ { "11", "", "11" }, "t6 10 20", "t6 10 20", 3 },
};

static void put_mark(FILE *f, const struct ptd_mark *mark)
{
	assert_true(mark->kind == PTD_MARK_GAP ||
		    (mark->kind == PTD_MARK_POINT && mark->value == 1));
	fprintf(f, " %c%" PRIu64, mark->kind == PTD_MARK_GAP ? 'g' : '*', mark->t);
}

static void put_batch(FILE *f, const struct ptd_batch *batch)
{
	size_t m = 0;

	fprintf(f, "t%" PRIu32, batch->slice->tid);
	for (size_t i = 0; i <= batch->n_runs; i++) {
		while (m < batch->n_marks && batch->marks[m].run == i)
			put_mark(f, &batch->marks[m++]);
		if (i < batch->n_runs)
			fprintf(f, " %" PRIu64, batch->runs[i].t);
	}
	assert_int_equal(m, batch->n_marks);
}

/* Lay the log over the batch that begins at @text. Return: where it ends. */
static const char *lay_batch(struct overlay *overlay, const char *text, FILE *f)
{
	struct ptd_slice slice = { .pid = 9 };
	struct ptd_run runs[RUNS_MAX];
	struct ptd_mark marks[RUNS_MAX];
	struct ptd_batch batch = { .slice = &slice, .runs = runs, .marks = marks };

	while (*text && *text != '/') {
		const char kind = *text >= '0' && *text <= '9' ? '\0' : *text++;
		char *end;
		const uint64_t n = strtoull(text, &end, 10);

		assert_true(batch.n_runs < RUNS_MAX && batch.n_marks < RUNS_MAX && end != text);
		if (kind == 't')
			slice.tid = (uint32_t)n;
		else if (kind == 'g')
			marks[batch.n_marks++] =
			    (struct ptd_mark){ .run = batch.n_runs, .kind = PTD_MARK_GAP, .t = n };
		else
			runs[batch.n_runs++] = (struct ptd_run){ .t = n, .n = 1 };
		text = end + strspn(end, " ");
	}
	assert_int_equal(overlay_batch(overlay, &batch, NULL), 0);
	put_batch(f, &batch);
	return text;
}

static void lay(struct overlay *overlay, const struct row *row)
{
	const char *at = row->batches;
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	assert_non_null(f);
	assert_int_equal(overlay_start(overlay, NULL), 0);
	for (;;) {
		at = lay_batch(overlay, at, f);
		if (*at == '\0')
			break;
		fputc(*at++, f);
	}
	assert_int_equal(fclose(f), 0);
	assert_string_equal(text, row->expected);
	free(text);
}

static void every_row(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct textlog log = { .log = { .ops = &ops, .n_calls = 7 } };
		struct overlay *overlay;
		uint32_t pid = 0, tid = 0;

		print_message("  %s\n", rows[i].batches);
		for (size_t k = 0; k < LANES_MAX; k++) {
			log.lanes[k].lane.pid = 9;
			log.lanes[k].lane.tid = k < 2 ? 7 : 8;
			log.lanes[k].text = rows[i].lanes[k] ?: "";
			assert_int_equal(vec_push(&log.log.lanes, &log.lanes[k].lane), 0);
		}
		assert_int_equal(overlay_new(&log.log, &overlay), 0);
		lay(overlay, &rows[i]);
		assert_int_equal(overlay_n_unknown(overlay, &pid, &tid), rows[i].n_unknown);
		assert_int_equal(pid, rows[i].n_unknown > 0 ? 9 : 0);
		assert_int_equal(tid, rows[i].n_unknown == 3 ? 7 : rows[i].n_unknown > 0 ? 8 : 0);
		/* The stream begins anew. */
		lay(overlay, &rows[i]);
		assert_int_equal(log.n_begun, 2 * LANES_MAX);
		assert_int_equal(overlay_n_calls(overlay), 7);
		overlay_free(overlay);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(every_row) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
