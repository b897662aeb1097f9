/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Trailers: the last words of a record's body, and what they say for a sample_type. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <linux/perf_event.h>

#include "util/perf/perfabi.h"
#include "util/perf/trailer.h"

#define TID        PERF_SAMPLE_TID
#define TIME       PERF_SAMPLE_TIME
#define ID         PERF_SAMPLE_ID
#define STREAM     PERF_SAMPLE_STREAM_ID
#define CPU        PERF_SAMPLE_CPU
#define IDENTIFIER PERF_SAMPLE_IDENTIFIER
#define PIDS(p, t) ((uint64_t)(t) << 32 | (p))

/* The body is 6 words: the last of them are the trailer. */
static void take(void **state)
{
	static const struct {
		const char *name;
		uint64_t sample_type;
		uint64_t body[6];
		uint64_t id;
		struct trailer expected;
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
		struct trailer t;

		print_message("  %s\n", rows[i].name);
		assert_int_equal(trailer_id(body, rows[i].sample_type), rows[i].id);
		assert_int_equal(trailer_take(&body, rows[i].sample_type, &t), 0);
		assert_int_equal(t.pid, rows[i].expected.pid);
		assert_int_equal(t.tid, rows[i].expected.tid);
		assert_int_equal(t.cpu, rows[i].expected.cpu);
		assert_int_equal(t.time, rows[i].expected.time);
		assert_int_equal(t.id, rows[i].id);
		assert_int_equal(cursor_left(&body), 8 * rows[i].left);
		assert_ptr_equal(body.pos, rows[i].body);
	}
}

static void too_short(void **state)
{
	static const uint64_t words[2] = { 1, 2 };
	struct trailer t = { .pid = 0xdead };
	struct cursor body = cursor_from(words, 15);

	(void)state;
	assert_int_equal(trailer_take(&body, TID | TIME, &t), -EBADMSG);
	assert_int_equal(t.pid, 0xdead);
	assert_int_equal(cursor_left(&body), 15);
	assert_int_equal(trailer_id(cursor_from(words, 7), IDENTIFIER), 0);
	assert_int_equal(trailer_id(cursor_from(words, 16), ID | STREAM | CPU), 0);
}

static void write_ours(void **state)
{
	const struct trailer in = { .pid = 1, .tid = 2, .time = 3, .cpu = 4, .id = 5 };
	const uint64_t expected[] = { PIDS(1, 2), 3, 4, 5 };
	uint8_t bytes[TRAILER_SIZE];
	struct cursor body = cursor_from(bytes, sizeof(bytes));
	struct trailer t;

	(void)state;
	memset(bytes, 0xee, sizeof(bytes));
	trailer_write(&in, bytes);
	assert_memory_equal(bytes, expected, sizeof(bytes));
	assert_int_equal(trailer_id(body, PERFABI_SAMPLE_TYPE), 5);
	assert_int_equal(trailer_take(&body, PERFABI_SAMPLE_TYPE, &t), 0);
	assert_int_equal(t.pid, 1);
	assert_int_equal(t.tid, 2);
	assert_int_equal(t.time, 3);
	assert_int_equal(t.cpu, 4);
	assert_int_equal(t.id, 5);
	assert_int_equal(cursor_left(&body), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(take),
		cmocka_unit_test(too_short),
		cmocka_unit_test(write_ours),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
