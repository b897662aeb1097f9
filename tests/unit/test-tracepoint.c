/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Tracepoints: perf's formats, in which those that are used are found; the same, spoiled one text
 * at a time, and cut off at each byte; and the raw data of samples.
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
static int find(struct tracepoint *tracepoints)
{
	void *copy = malloc(size ?: 1);
	int r;

	assert_non_null(copy);
	memcpy(copy, formats, size);
	r = tracepoints_find(cursor_from(copy, size), tracepoints);
	free(copy);
	return r;
}

static void good(void **state)
{
	struct tracepoint t[_TRACEPOINT_KINDS] = {};

	(void)state;
	size = perfsched_formats(formats);
	assert_int_equal(find(t), 0);
	for (size_t i = 0; i < _TRACEPOINT_KINDS; i++)
		assert_true(t[i].is_known);
	assert_int_equal(t[TRACEPOINT_SCHED_SWITCH].id, PERFSCHED_ID);
	assert_int_equal(t[TRACEPOINT_SCHED_SWITCH].offsets[0], PERFSCHED_PREV_PID);
	assert_int_equal(t[TRACEPOINT_SCHED_SWITCH].offsets[1], PERFSCHED_NEXT_PID);
	assert_int_equal(t[TRACEPOINT_SIGNAL_DELIVER].id, PERFSCHED_SIGNAL_ID);
	assert_int_equal(t[TRACEPOINT_SIGNAL_DELIVER].offsets[TRACEPOINT_SIGNAL], 8);
	assert_int_equal(t[TRACEPOINT_SIGNAL_DELIVER].offsets[TRACEPOINT_CODE], 16);
	assert_int_equal(t[TRACEPOINT_SIGNAL_DELIVER].offsets[TRACEPOINT_HANDLER], 24);
	assert_int_equal(t[TRACEPOINT_SYS_ENTER].id, PERFSCHED_SYSCALL_ID);
	assert_int_equal(t[TRACEPOINT_SYS_ENTER].offsets[TRACEPOINT_NUMBER], 8);
	assert_int_equal(tracepoints_kind(t, PERFSCHED_ID), TRACEPOINT_SCHED_SWITCH);
	assert_int_equal(tracepoints_kind(t, PERFSCHED_SYSCALL_ID), TRACEPOINT_SYS_ENTER);
	assert_int_equal(tracepoints_kind(t, 11), _TRACEPOINT_KINDS);
	t[TRACEPOINT_SYS_ENTER].is_known = false;
	assert_int_equal(tracepoints_kind(t, PERFSCHED_SYSCALL_ID), _TRACEPOINT_KINDS);
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
		{ "sched_switch", "sched_swatch", 0 },
		{ "name: sched_switch", "Name: sched_switch", 0 },
		{ "ID: 314", "id: 314", -EBADMSG },
		{ " next_pid;", " text_pid;", -EBADMSG },
		{ " next_pid;", "_next_pid;", -EBADMSG },
		{ " prev_pid;", " pref_pid;", -EBADMSG },
		{ "offset:56;\tsize:4", "offset:56;\tsize:8", -EBADMSG },
		{ "offset:56;\tsize:4", "offset 56;\tsize:4", -EBADMSG },
		{ "offset:56;\tsize:4;\tsigned:1;", "offset:99999;\tsize:4;\tsigned", -EBADMSG },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct tracepoint t[_TRACEPOINT_KINDS] = {};

		print_message("  %s\n", rows[i].with);
		size = perfsched_formats(formats);
		put(rows[i].text, rows[i].with);
		assert_int_equal(find(t), rows[i].expected);
		assert_false(t[TRACEPOINT_SCHED_SWITCH].is_known);
	}
}

/* The software source does not know the code of a signal. */
static void without_code(void **state)
{
	struct tracepoint t[_TRACEPOINT_KINDS] = {};
	uint64_t value;

	(void)state;
	size = perfsched_formats(formats);
	put(" code;", " node;");
	assert_int_equal(find(t), 0);
	assert_true(t[TRACEPOINT_SIGNAL_DELIVER].is_known);
	assert_int_equal(t[TRACEPOINT_SIGNAL_DELIVER].offsets[TRACEPOINT_CODE],
			 TRACEPOINT_NO_FIELD);
	assert_int_equal(t[TRACEPOINT_SIGNAL_DELIVER].offsets[TRACEPOINT_HANDLER], 24);
	assert_int_equal(tracepoint_read(&t[TRACEPOINT_SIGNAL_DELIVER], TRACEPOINT_SIGNAL_DELIVER,
					 TRACEPOINT_CODE, cursor_from(formats, size), &value),
			 -EBADMSG);
}

/* Numbers of things: more than there are; so many that they would not end. */
static void too_many(void **state)
{
	const size_t whole = perfsched_formats(formats);
	size_t found = 0;

	(void)state;
	for (size_t at = 0; at + 4 <= whole; at++) {
		struct tracepoint t[_TRACEPOINT_KINDS] = {};

		size = perfsched_formats(formats);
		memset(formats + at, 0xff, 4);
		(void)!find(t);
		found += t[TRACEPOINT_SCHED_SWITCH].is_known;
	}
	/* Not everything is looked at. */
	assert_true(found > 0 && found < whole);
}

static void cut_off(void **state)
{
	const size_t whole = perfsched_formats(formats);
	struct tracepoint t[_TRACEPOINT_KINDS] = {};

	(void)state;
	/* Behind it are no more formats. */
	for (size = 0; size < whole - 16; size++)
		assert_int_equal(find(t), -EBADMSG);
	assert_true(t[TRACEPOINT_SIGNAL_DELIVER].is_known);
	assert_false(t[TRACEPOINT_SCHED_SWITCH].is_known);
	for (; size <= whole; size++)
		assert_int_equal(find(t), 0);
}

static void raw(void **state)
{
	static const struct tracepoint t = { .offsets = { 4, 12, 4 } };
	const uint32_t words[] = { 0, 11, 0, 12 };
	uint64_t value = 77;

	(void)state;
	for (size_t i = 0; i < sizeof(words); i++)
		assert_int_equal(tracepoint_read(&t, TRACEPOINT_SCHED_SWITCH, TRACEPOINT_NEXT_PID,
						 cursor_from(words, i), &value),
				 -EBADMSG);
	assert_int_equal(value, 77);
	assert_int_equal(tracepoint_read(&t, TRACEPOINT_SCHED_SWITCH, TRACEPOINT_NEXT_PID,
					 cursor_from(words, 16), &value),
			 0);
	assert_int_equal(value, 12);
	assert_int_equal(tracepoint_read(&t, TRACEPOINT_SIGNAL_DELIVER, TRACEPOINT_HANDLER,
					 cursor_from(words, 11), &value),
			 -EBADMSG);
	assert_int_equal(tracepoint_read(&t, TRACEPOINT_SIGNAL_DELIVER, TRACEPOINT_HANDLER,
					 cursor_from(words, 12), &value),
			 0);
	assert_int_equal(value, 11);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(good),     cmocka_unit_test(spoiled),
		cmocka_unit_test(too_many), cmocka_unit_test(cut_off),
		cmocka_unit_test(raw),      cmocka_unit_test(without_code),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
