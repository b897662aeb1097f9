/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Perf records: each row is a run of bytes and what a walk over it must say, or a record's body and
 * what is in its trailer.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <linux/perf_event.h>

#include "decoder/file/perfrec.h"
#include "decoder/trace/recsort.h"
#include "decoder/trace/trace.h"

#define HDR(t, sz)                                   \
	{                                            \
		.type = (t), .misc = 7, .size = (sz) \
	}

static void walk(void **state)
{
	static const struct {
		const char *name;
		struct perf_event_header h;
		size_t size; /* bytes shown to the parser */
		int expected;
	} rows[] = {
		{ "empty run", HDR(PERF_RECORD_COMM, 8), 0, PERFREC_END },
		{ "header only", HDR(PERF_RECORD_COMM, 8), 8, 0 },
		{ "header cut off", HDR(PERF_RECORD_COMM, 8), 7, PERFREC_TRUNCATED },
		{ "body cut off", HDR(PERF_RECORD_COMM, 16), 8, PERFREC_TRUNCATED },
		{ "size below header", HDR(PERF_RECORD_COMM, 7), 8, -EBADMSG },
		{ "size zero", HDR(PERF_RECORD_COMM, 0), 8, -EBADMSG },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct cursor c = cursor_from(&rows[i].h, rows[i].size);
		const struct cursor before = c;
		struct perfrec rec = { .type = 0xdead };

		print_message("  %s\n", rows[i].name);
		assert_int_equal(perfrec_next(&c, &rec), rows[i].expected);
		if (rows[i].expected == 0) {
			assert_int_equal(rec.type, rows[i].h.type);
			assert_int_equal(rec.misc, 7);
			assert_int_equal(cursor_left(&c), 0);
		} else {
			assert_int_equal(rec.type, 0xdead);
			assert_ptr_equal(c.pos, before.pos);
		}
	}
}

#define TID        PERF_SAMPLE_TID
#define TIME       PERF_SAMPLE_TIME
#define ID         PERF_SAMPLE_ID
#define STREAM     PERF_SAMPLE_STREAM_ID
#define CPU        PERF_SAMPLE_CPU
#define IDENTIFIER PERF_SAMPLE_IDENTIFIER
#define PIDS(p, t) ((uint64_t)(t) << 32 | (p))

/* The body is 6 words: the last of them are the trailer. */
static void trailer(void **state)
{
	static const struct {
		const char *name;
		uint64_t sample_type;
		uint64_t body[6];
		uint64_t id;
		struct perfrec_trailer expected;
		size_t left; /* words before it */
	} rows[] = {
		{ "all of them",
		  TID | TIME | ID | STREAM | CPU | IDENTIFIER,
		  { PIDS(1, 2), 3, 4, 5, 6, 7 },
		  7,
		  { .pid = 1, .tid = 2, .time = 3, .cpu = 6 },
		  0 },
		{ "as perf record asks for with PT; IP has no field",
		  PERF_SAMPLE_IP | TID | TIME | CPU | IDENTIFIER,
		  { 8, 9, PIDS(1, 2), 3, 4, 5 },
		  5,
		  { .pid = 1, .tid = 2, .time = 3, .cpu = 4 },
		  2 },
		{ "no identifier: the id is before stream and cpu",
		  TID | TIME | ID | STREAM | CPU,
		  { 9, PIDS(1, 2), 3, 4, 5, 6 },
		  4,
		  { .pid = 1, .tid = 2, .time = 3, .cpu = 6 },
		  1 },
		{ "no id at all",
		  TIME,
		  { 5, 6, 7, 8, 9, 3 },
		  0,
		  { .pid = UINT32_MAX, .tid = UINT32_MAX, .cpu = UINT32_MAX, .time = 3 },
		  5 },
		{ "nothing",
		  PERF_SAMPLE_IP,
		  { 4, 5, 6, 7, 8, 9 },
		  0,
		  { .pid = UINT32_MAX, .tid = UINT32_MAX, .cpu = UINT32_MAX },
		  6 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct cursor body = cursor_from(rows[i].body, sizeof(rows[i].body));
		struct perfrec_trailer t;

		print_message("  %s\n", rows[i].name);
		assert_int_equal(perfrec_id(body, rows[i].sample_type), rows[i].id);
		assert_int_equal(perfrec_take_trailer(&body, rows[i].sample_type, &t), 0);
		assert_int_equal(t.pid, rows[i].expected.pid);
		assert_int_equal(t.tid, rows[i].expected.tid);
		assert_int_equal(t.cpu, rows[i].expected.cpu);
		assert_int_equal(t.time, rows[i].expected.time);
		assert_int_equal(cursor_left(&body), 8 * rows[i].left);
		assert_ptr_equal(body.pos, rows[i].body);
	}
}

static void trailer_too_short(void **state)
{
	static const uint64_t words[2] = { 1, 2 };
	struct perfrec_trailer t = { .pid = 0xdead };
	struct cursor body = cursor_from(words, 15);

	(void)state;
	assert_int_equal(perfrec_take_trailer(&body, TID | TIME, &t), -EBADMSG);
	assert_int_equal(t.pid, 0xdead);
	assert_int_equal(cursor_left(&body), 15);
	assert_int_equal(perfrec_id(cursor_from(words, 7), IDENTIFIER), 0);
	assert_int_equal(perfrec_id(cursor_from(words, 16), ID | STREAM | CPU), 0);
}

static void string(void **state)
{
	static const char bytes[] = { 'a', 'b', 0, 'c' };
	struct cursor c = cursor_from(bytes, sizeof(bytes));
	const char *s = NULL;

	(void)state;
	assert_int_equal(perfrec_get_string(&c, &s), 0);
	assert_string_equal(s, "ab");
	assert_int_equal(cursor_left(&c), 1);
	assert_int_equal(perfrec_get_string(&c, &s), -EBADMSG);
	assert_string_equal(s, "ab");
	assert_int_equal(cursor_left(&c), 1);
}

/* A digit a record: its time. The order of equal ones shows in their offsets. */
static void sort(void **state)
{
	static const char *const rows[] = {
		"",           "5",       "12345",       "54321", "33333",
		"1370246",    "9012345", "12341234123", "2121",  "0099",
		"5151515151", "9",       "98",          "989",   "7300000000000037",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct table from, to;
		const struct trace_record *records;
		const size_t n = strlen(rows[i]);

		print_message("  \"%s\"\n", rows[i]);
		table_init(&from, sizeof(*records));
		table_init(&to, sizeof(*records));
		for (size_t j = 0; j < n; j++)
			assert_int_equal(
			    table_push(&from, &(struct trace_record){ .time = (uint64_t)rows[i][j],
								      .file_offset = j }),
			    0);
		assert_int_equal(table_finish(&from), 0);
		assert_int_equal(recsort(&from, n, &to), 0);
		records = to.items;
		for (size_t j = 0; j < n; j++) {
			assert_int_equal(records[j].time, rows[i][records[j].file_offset]);
			if (j == 0)
				continue;
			assert_true(records[j - 1].time <= records[j].time);
			if (records[j - 1].time == records[j].time)
				assert_true(records[j - 1].file_offset < records[j].file_offset);
		}
		table_deinit(&from);
		table_deinit(&to);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(walk),
		cmocka_unit_test(trailer),
		cmocka_unit_test(trailer_too_short),
		cmocka_unit_test(string),
		cmocka_unit_test(sort),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
