/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Tracepoint: perf's formats of tracepoints, in which sched_switch is found; the same, spoiled one
 * text at a time, and cut off at each byte; and the raw data of samples.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/file/tracepoint.h"
#include "tests/lib/perfsched.h"

static uint8_t formats[4096];
static size_t size;

/* In an allocation of its size, so that ASan sees its end. */
static int find(struct tracepoint *ret_tracepoint)
{
	void *copy = malloc(size ?: 1);
	int r;

	assert_non_null(copy);
	memcpy(copy, formats, size);
	r = tracepoint_find(cursor_from(copy, size), ret_tracepoint);
	free(copy);
	return r;
}

static void good(void **state)
{
	struct tracepoint t = {};

	(void)state;
	size = perfsched_formats(formats);
	assert_int_equal(find(&t), 0);
	assert_true(t.is_known);
	assert_int_equal(t.id, PERFSCHED_ID);
	assert_int_equal(t.prev_pid, PERFSCHED_PREV_PID);
	assert_int_equal(t.next_pid, PERFSCHED_NEXT_PID);
}

/* Put @with, which is as long, in the place of the last @text. */
static void put(const char *text, const char *with)
{
	const size_t n = strlen(text);

	assert_int_equal(strlen(with), n);
	for (size_t at = size - n;; at--) {
		if (memcmp(formats + at, text, n) == 0) {
			memcpy(formats + at, with, n);
			return;
		}
		assert_true(at > 0);
	}
}

static void spoiled(void **state)
{
	static const struct {
		const char *text, *with;
		int expected;
	} rows[] = {
		{ "tracing", "trading", -EBADMSG },
		{ "header_page", "eader_pages", -EBADMSG },
		{ "header_event", "header_ovent", -EBADMSG },
		{ "sched_switch", "sched_swatch", -ENOENT },
		{ "name: sched_switch", "Name: sched_switch", -ENOENT },
		{ "ID: 314", "id: 314", -EBADMSG },
		{ " next_pid;", " text_pid;", -EBADMSG },
		{ " next_pid;", "_next_pid;", -EBADMSG },
		{ " prev_pid;", " pref_pid;", -EBADMSG },
		{ "offset:56;\tsize:4", "offset:56;\tsize:8", -EBADMSG },
		{ "offset:56;\tsize:4", "offset 56;\tsize:4", -EBADMSG },
		{ "offset:56;\tsize:4;\tsigned:1;", "offset:99999;\tsize:4;\tsigned", -EBADMSG },
	};
	struct tracepoint t;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		print_message("  %s\n", rows[i].with);
		size = perfsched_formats(formats);
		t = (struct tracepoint){};
		put(rows[i].text, rows[i].with);
		assert_int_equal(find(&t), rows[i].expected);
		assert_false(t.is_known);
	}
}

/* Numbers of things: more than there are; so many that they would not end. */
static void too_many(void **state)
{
	struct tracepoint t = {};
	const size_t whole = perfsched_formats(formats);
	size_t found = 0;

	(void)state;
	for (size_t at = 0; at + 4 <= whole; at++) {
		size = perfsched_formats(formats);
		memset(formats + at, 0xff, 4);
		found += find(&t) == 0;
	}
	/* Not everything is looked at. */
	assert_true(found > 0 && found < whole);
}

static void cut_off(void **state)
{
	const size_t whole = perfsched_formats(formats);
	struct tracepoint t = {};

	(void)state;
	/* Behind it are no more formats. */
	for (size = 0; size < whole - 16; size++)
		assert_int_equal(find(&t), -EBADMSG);
	for (; size <= whole; size++)
		assert_int_equal(find(&t), 0);
}

static void raw(void **state)
{
	static const struct tracepoint t = { .prev_pid = 4, .next_pid = 12 };
	const uint32_t words[] = { 0, 11, 0, 12 };
	struct cursor next;
	uint32_t prev = 0, n;

	(void)state;
	for (size_t i = 0; i < sizeof(words); i++)
		assert_int_equal(tracepoint_read(&t, cursor_from(words, i), &prev, &next),
				 -EBADMSG);
	assert_int_equal(prev, 0);
	assert_int_equal(tracepoint_read(&t, cursor_from(words, 16), &prev, &next), 0);
	assert_int_equal(prev, 11);
	assert_int_equal(cursor_get(&next, sizeof(n), &n), 0);
	assert_int_equal(n, 12);
	assert_int_equal(cursor_left(&next), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(good),    cmocka_unit_test(spoiled), cmocka_unit_test(too_many),
		cmocka_unit_test(cut_off), cmocka_unit_test(raw),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
