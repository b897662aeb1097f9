/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Span log: what was logged of several tracks is read of each, in order and nested. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "decoder/sink/export/spanlog.h"
#include "ptd/decode.h"
#include "util/varint.h"

#define F SPAN_FUNCTION

/* A function is entered. */
static void enter(struct spanlog *log, struct viewtrack *track, uint64_t t, uint32_t function)
{
	assert_int_equal(spanlog_begin(log, track, t, F + function), 0);
}

static void leave(struct spanlog *log, struct viewtrack *track, uint64_t t)
{
	assert_int_equal(spanlog_end(log, track, t), 0);
}

/* What is read of the track: "TIME+FUNCTION" where it begins, "TIME-FUNCTION" where it ends; a gap
 * is function 0. */
static void assert_track(struct spanlog *log, uint32_t track, const char *expected)
{
	_cleanup_(spanlog_reader_deinit) struct spanlog_reader reader = {};
	struct span_event event;
	char text[1024] = "";
	size_t n = 0;
	int r;

	assert_int_equal(spanlog_read(log, track, &reader), 0);
	while ((r = spanlog_next(&reader, &event)) == 0) {
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%" PRIu64 "%c%u ", event.t,
				      event.begins ? '+' : '-',
				      event.span >= F ? event.span - F : 0);
		assert_true(n < sizeof(text));
	}
	assert_int_equal(r, PTD_END);
	assert_string_equal(text, expected);
}

/* Outer functions are read where their part begins, the outermost first. */
static void outer(void **state)
{
	struct spanlog log = { .spills.room = 0 };
	struct viewtrack a = { .id = 0, .part = 1, .first = 100 }, b = { .id = 2 };

	(void)state;
	enter(&log, &a, 100, 1);
	assert_int_equal(spanlog_begin(&log, &b, 50, PTD_GAP_OVERFLOW), 0);
	leave(&log, &a, 110);
	enter(&log, &a, 99, 2);
	enter(&log, &a, 110, 3);
	leave(&log, &b, 60);
	leave(&log, &a, 120);
	leave(&log, &a, 130);
	enter(&log, &a, 98, 4);
	leave(&log, &a, 140);
	/* Behind a gap is the next part. */
	assert_int_equal(spanlog_begin(&log, &a, 140, PTD_GAP_OVERFLOW), 0);
	leave(&log, &a, 198);
	a.part = 2;
	a.first = 200;
	enter(&log, &a, 200, 5);
	leave(&log, &a, 210);
	enter(&log, &a, 199, 6);
	leave(&log, &a, 220);
	assert_int_equal(spanlog_finish(&log), 0);
	assert_track(&log, 0,
		     "98+4 99+2 100+1 110-1 110+3 120-3 130-2 140-4 140+0 198-0 "
		     "199+6 200+5 210-5 220-6 ");
	assert_track(&log, 1, "");
	assert_track(&log, 2, "50+0 60-0 ");
	assert_int_equal(log.tracks.items[0].n_spans, 7);
	assert_int_equal(log.tracks.items[0].first, 98);
	assert_int_equal(log.tracks.items[0].last, 220);
	spanlog_deinit(&log);
}

/* Ends without a beginning are left out, and times do not go back. */
static void nonsense(void **state)
{
	struct spanlog log = {};
	struct viewtrack track = { .part = 1, .first = 5 };

	(void)state;
	leave(&log, &track, 7);
	enter(&log, &track, 6, 1);
	leave(&log, &track, 3);
	leave(&log, &track, 8);
	assert_int_equal(spanlog_finish(&log), 0);
	assert_track(&log, 0, "7+1 7-1 ");
	spanlog_deinit(&log);
}

/* More than memory takes goes to the file, and comes back; there is a limit. */
static void long_tracks(void **state)
{
	enum { N = 20000, TRACKS = 3 };
	struct spanlog log = { .spills.room = 1 << 20 };
	struct viewtrack tracks[TRACKS] = { { .id = 0 }, { .id = 1 }, { .id = 2 } };

	(void)state;
	for (uint32_t i = 0; i < N; i++)
		for (uint32_t k = 0; k < TRACKS; k++) {
			enter(&log, &tracks[k], (uint64_t)i * 1000 * k, i);
			leave(&log, &tracks[k], (uint64_t)i * 1000 * k + 1);
		}
	assert_int_equal(spanlog_finish(&log), 0);
	assert_true(log.spill.size > 100000);
	for (uint32_t k = 0; k < TRACKS; k++) {
		_cleanup_(spanlog_reader_deinit) struct spanlog_reader reader = {};
		struct span_event event;

		assert_int_equal(spanlog_read(&log, k, &reader), 0);
		for (uint32_t i = 0; i < N; i++) {
			assert_int_equal(spanlog_next(&reader, &event), 0);
			assert_true(event.begins && event.span == F + i);
			assert_int_equal(event.t, i > 0 && k == 0 ? 1 : (uint64_t)i * 1000 * k);
			assert_int_equal(spanlog_next(&reader, &event), 0);
			assert_true(!event.begins && event.span == F + i);
		}
		assert_int_equal(spanlog_next(&reader, &event), PTD_END);
	}
	log.spills.room = 1;
	for (uint32_t i = 0; i < N; i++)
		if (spanlog_begin(&log, &tracks[0], i, F) == -EFBIG) {
			spanlog_deinit(&log);
			return;
		}
	fail_msg("there is no limit");
}

/* However many tracks there are, what they have in memory together is bounded. */
static void many_tracks(void **state)
{
	enum { TRACKS = 5000, N = 1400 };
	struct spanlog log = { .spills.room = 1 << 30 };
	_cleanup_(spanlog_reader_deinit) struct spanlog_reader reader = {};
	struct span_event event;
	uint32_t n = 0;

	(void)state;
	for (uint32_t k = 0; k < TRACKS; k++)
		for (uint32_t i = 0; i < N; i++) {
			struct viewtrack track = { .id = k };

			enter(&log, &track, i, 1000);
			leave(&log, &track, i);
			assert_true(log.n_buffered <= SPANLOG_BUFFERED_MAX);
		}
	assert_int_equal(spanlog_finish(&log), 0);
	assert_true(log.spill.size > 0);
	assert_int_equal(log.tracks.items[0].events.buffer.n_capacity, 0);
	assert_int_equal(spanlog_read(&log, TRACKS - 1, &reader), 0);
	while (spanlog_next(&reader, &event) == 0)
		n++;
	assert_int_equal(n, 2 * N);
	spanlog_deinit(&log);
}

static void varint(void **state)
{
	static const uint64_t numbers[] = {
		0, 127, 128, 16383, 16384, UINT64_MAX >> 1, UINT64_MAX
	};
	uint8_t bytes[VARINT_MAX];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
		const uint8_t *end = varint_put(bytes, numbers[i]);
		uint64_t number;

		assert_true(end <= bytes + sizeof(bytes));
		assert_ptr_equal(varint_get(bytes, &number), end);
		assert_int_equal(number, numbers[i]);
	}
	assert_memory_equal(bytes, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", VARINT_MAX);
	assert_int_equal(varint_put(bytes, 300) - bytes, 2);
	assert_memory_equal(bytes, "\xac\x02", 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(outer),       cmocka_unit_test(nonsense),
		cmocka_unit_test(long_tracks), cmocka_unit_test(many_tracks),
		cmocka_unit_test(varint),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
