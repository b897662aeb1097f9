/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What is left of a small stream made by hand (tests/lib/stream.h) if a part of it is asked for. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "decoder/stream/extract.h"
#include "ptd/calls.h"
#include "tests/lib/stream.h"
#include "util/map.h"

#define T UINT64_C(1000000005)

static const uint32_t three = 3, four = 4, ten = 10, eleven = 11;
static const char *const demo = "demo", *const other = "other";
static const char *const main_name = "main", *const f_name = "ns::f(int)";
static const char *const path = "/bin/demo", *const last_part = "demo", *const jit = "[jit]";

#define ALL "0:0+3 async 0:0+3 gap 2:1+1 1:0+1 off"

/* Of the expected text: a run is BLOCK:FIRST+N, a mark its name. */
static const struct row {
	const char *expected;
	struct ptd_part part;
	uint64_t from, to; /* 0: all */
	uint64_t n_left_out, first, last;
} rows[] = {
	{ .expected = ALL, .first = T, .last = T + 1000000000 },
	{ .expected = ALL,
	  .part = { .cpus = &three, .n_cpus = 1 },
	  .first = T,
	  .last = T + 1000000000 },
	{ .expected = ALL,
	  .part = { .pids = &ten,
		    .n_pids = 1,
		    .tids = &eleven,
		    .n_tids = 1,
		    .comms = &demo,
		    .n_comms = 1 },
	  .first = T,
	  .last = T + 1000000000 },
	{ .expected = "", .part = { .pids = &eleven, .n_pids = 1 }, .n_left_out = 8 },
	{ .expected = "", .part = { .tids = &ten, .n_tids = 1 }, .n_left_out = 8 },
	{ .expected = "", .part = { .comms = &other, .n_comms = 1 }, .n_left_out = 8 },
	{ .expected = "",
	  .part = { .pids = &ten, .n_pids = 1, .comms = &other, .n_comms = 1 },
	  .n_left_out = 8 },
	{ "0:0+3 async 0:0+3", {}, T, T + 50, 2, T, T },
	{ "0:0+3 async 0:0+3 gap", {}, T, T + 51, 2, T, T + 50 },
	{ "gap 2:1+1", {}, T + 1, T + 101, 7, T + 50, T + 100 },
	{ "2:1+1 1:0+1 off", {}, T + 51, UINT64_MAX, 6, T + 100, T + 1000000000 },
	{ "", {}, T + 101, T + 102, 8, 0, 0 },
	{ .expected = "0:0+3 async 0:0+3 gap",
	  .part = { .symbols = &main_name, .n_symbols = 1 },
	  .n_left_out = 2,
	  .first = T,
	  .last = T + 50 },
	{ .expected = "gap 2:1+1",
	  .part = { .symbols = &f_name, .n_symbols = 1 },
	  .n_left_out = 7,
	  .first = T + 50,
	  .last = T + 100 },
	{ .expected = "gap",
	  .part = { .symbols = &demo, .n_symbols = 1 },
	  .n_left_out = 8,
	  .first = T + 50,
	  .last = T + 50 },
	{ .expected = "0:0+3 async 0:0+3 gap 2:1+1",
	  .part = { .objects = &path, .n_objects = 1 },
	  .n_left_out = 1,
	  .first = T,
	  .last = T + 100 },
	{ .expected = "0:0+3 async 0:0+3 gap 2:1+1",
	  .part = { .objects = &last_part, .n_objects = 1 },
	  .n_left_out = 1,
	  .first = T,
	  .last = T + 100 },
	{ .expected = "gap 1:0+1 off",
	  .part = { .objects = &jit, .n_objects = 1 },
	  .n_left_out = 7,
	  .first = T + 50,
	  .last = T + 1000000000 },
	{ .expected = "gap",
	  .part = { .objects = &jit, .n_objects = 1, .symbols = &main_name, .n_symbols = 1 },
	  .n_left_out = 8,
	  .first = T + 50,
	  .last = T + 50 },
};

/* Add @batch to the text. */
static void put(char text[static 512], const struct ptd_batch *batch)
{
	size_t m = 0;

	for (size_t i = 0; i <= batch->n_runs; i++) {
		size_t n = strlen(text);

		for (; m < batch->n_marks && batch->marks[m].run == i; m++)
			n += (size_t)snprintf(text + n, 512 - n, "%s%s", n ? " " : "",
					      ptd_mark_kind_name(batch->marks[m].kind));
		if (i < batch->n_runs)
			(void)snprintf(text + n, 512 - n, "%s%" PRIu32 ":%u+%u", n ? " " : "",
				       batch->runs[i].block->id, batch->runs[i].first,
				       batch->runs[i].n);
	}
	assert_int_equal(m, batch->n_marks);
}

static void parts(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct row *row = &rows[i];
		struct extract_counts counts = {};
		struct extract *extract;
		struct ptd_logged batch;
		struct stream stream;
		char text[512] = "";

		stream_init(&stream);
		assert_int_equal(extract_new(&row->part, NULL, NULL, &extract), 0);
		if (row->to)
			extract_set_times(extract, row->from, row->to);
		assert_int_equal(extract_batch(extract,
					       &(struct ptd_logged){ .batch = stream.batch },
					       &counts, &batch),
				 0);
		put(text, &batch.batch);
		if (strcmp(text, row->expected) != 0 || counts.n_insns != row->n_left_out ||
		    counts.t_first != row->first || counts.t_last != row->last)
			fail_msg("row %zu: \"%s\", %" PRIu64 " left out, from %" PRIu64
				 " to %" PRIu64,
				 i, text, counts.n_insns, counts.t_first, counts.t_last);
		assert_int_equal(counts.n_gaps[PTD_GAP_OVERFLOW], !strstr(text, "gap"));
		assert_int_equal(counts.gap_bytes[PTD_GAP_OVERFLOW], strstr(text, "gap") ? 0 : 7);
		extract_free(extract);
	}
}

/* What the snapshot is about is asked for, but for the part's own lists. */
static void scope(void **state)
{
	static const struct {
		uint32_t pid;
		struct ptd_part part;
		const char *expected;
	} cases[] = {
		{ 10, {}, ALL },
		{ 11, {}, "" },
		{ 10, { .cpus = &three, .n_cpus = 1 }, ALL },
		{ 10, { .cpus = &four, .n_cpus = 1 }, "" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct extract_counts counts = {};
		struct extract *extract;
		struct ptd_logged batch;
		struct stream stream;
		struct map pids = {};
		char text[512] = "";

		stream_init(&stream);
		assert_int_equal(map_put(&pids, cases[i].pid, 1), 0);
		assert_int_equal(extract_new(&cases[i].part, &pids, NULL, &extract), 0);
		assert_int_equal(extract_batch(extract,
					       &(struct ptd_logged){ .batch = stream.batch },
					       &counts, &batch),
				 0);
		put(text, &batch.batch);
		assert_string_equal(text, cases[i].expected);
		extract_free(extract);
		map_deinit(&pids);
	}
}

/* Of a thread that is not known, the gaps are kept, since it may be the one that is asked for. */
static void unknown_thread(void **state)
{
	const struct ptd_part part = { .tids = &eleven, .n_tids = 1 };
	struct extract_counts counts = {};
	struct extract *extract;
	struct ptd_logged batch;
	struct stream stream;
	char text[512] = "";

	(void)state;
	stream_init(&stream);
	stream.slice.pid = stream.slice.tid = PTD_ID_UNKNOWN;
	assert_int_equal(extract_new(&part, NULL, NULL, &extract), 0);
	assert_int_equal(
	    extract_batch(extract, &(struct ptd_logged){ .batch = stream.batch }, &counts, &batch),
	    0);
	put(text, &batch.batch);
	assert_string_equal(text, "gap");
	assert_int_equal(counts.n_insns, 8);
	assert_int_equal(counts.n_gaps[PTD_GAP_OVERFLOW], 0);
	extract_free(extract);
}

/* Where a thread goes on behind what was left out, a mark stands, also in its next slice. */
static void broken_flow(void **state)
{
	const struct ptd_part symbol = { .symbols = &main_name, .n_symbols = 1 };
	const struct ptd_part cpu = { .cpus = &three, .n_cpus = 1 };
	struct extract_counts counts = {};
	struct extract *extract;
	struct ptd_logged batch;
	struct stream stream;
	char text[512] = "";

	(void)state;
	stream_init(&stream);
	stream.batch.n_marks = 0;
	assert_int_equal(extract_new(&symbol, NULL, NULL, &extract), 0);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(extract_batch(extract,
					       &(struct ptd_logged){ .batch = stream.batch },
					       &counts, &batch),
				 0);
		put(text, &batch.batch);
		stream.slice.t0 += 10;
	}
	assert_string_equal(text, "0:0+3 0:0+3 out of scope 0:0+3 0:0+3");
	extract_free(extract);

	/* It may have run elsewhere between its slices on the CPU. */
	text[0] = 0;
	stream.batch.n_runs = 1;
	assert_int_equal(extract_new(&cpu, NULL, NULL, &extract), 0);
	assert_true(extract_asks_for_cpu(extract, three));
	assert_false(extract_asks_for_cpu(extract, four));
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(extract_batch(extract,
					       &(struct ptd_logged){ .batch = stream.batch },
					       &counts, &batch),
				 0);
		put(text, &batch.batch);
		stream.slice.t0 += 10 * i;
	}
	assert_string_equal(text, "0:0+3 0:0+3 out of scope 0:0+3");
	extract_free(extract);
}

/* The last instructions of the idle thread of each CPU, and of a thread that is not known there. */
static void last_of_each_cpu(void **state)
{
	static const uint32_t ids[] = { 0, PTD_ID_UNKNOWN };
	const struct ptd_part part = { .last = 3 };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
		struct extract_counts counts = {};
		struct extract *extract;
		struct ptd_logged batch;
		struct stream stream;

		stream_init(&stream);
		stream.batch.n_marks = 0;
		stream.slice.pid = stream.slice.tid = ids[i];
		assert_int_equal(extract_new(&part, NULL, NULL, &extract), 0);
		extract_begin_search(extract);
		extract_begin_window(extract, 1, UINT64_MAX);
		for (stream.slice.cpu = 3; stream.slice.cpu < 5; stream.slice.cpu++)
			assert_int_equal(
			    extract_batch(extract, &(struct ptd_logged){ .batch = stream.batch },
					  &counts, &batch),
			    0);
		extract_end_window(extract);
		extract_end_search(extract);
		for (stream.slice.cpu = 3; stream.slice.cpu < 5; stream.slice.cpu++) {
			uint64_t n = 0;

			assert_int_equal(
			    extract_batch(extract, &(struct ptd_logged){ .batch = stream.batch },
					  &counts, &batch),
			    0);
			for (size_t k = 0; k < batch.batch.n_runs; k++)
				n += batch.batch.runs[k].n;
			assert_int_equal(n, 3);
		}
		extract_free(extract);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts),
		cmocka_unit_test(scope),
		cmocka_unit_test(unknown_thread),
		cmocka_unit_test(broken_flow),
		cmocka_unit_test(last_of_each_cpu),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
