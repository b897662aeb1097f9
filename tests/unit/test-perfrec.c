/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Perf records: each row is a run of bytes and what a walk over it must say. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <linux/perf_event.h>

#include "decoder/trace/recsort.h"
#include "decoder/trace/trace.h"
#include "util/perf/perfrec.h"

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

static void string(void **state)
{
	static const char bytes[] = { 'a', 'b', 0, 'c' };
	struct cursor c = cursor_from(bytes, sizeof(bytes));
	const char *s = NULL;

	(void)state;
	assert_int_equal(cursor_get_string(&c, &s), 0);
	assert_string_equal(s, "ab");
	assert_int_equal(cursor_left(&c), 1);
	assert_int_equal(cursor_get_string(&c, &s), -EBADMSG);
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
		table_init(&from, sizeof(*records), NULL);
		table_init(&to, sizeof(*records), NULL);
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
		cmocka_unit_test(string),
		cmocka_unit_test(sort),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
