/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "ctl/client.h"
#include "ctl/show.h"
#include "tests/lib/logged.h"

static void sizes(void **state)
{
	static const struct {
		uint64_t bytes;
		const char *expected;
	} rows[] = {
		{ 0, "0 B" },
		{ 1, "1 B" },
		{ 1023, "1023 B" },
		{ 1024, "1.0 KiB" },
		{ 1536, "1.5 KiB" },
		{ (1 << 20) - 1024, "1023.0 KiB" },
		{ 1 << 20, "1.0 MiB" },
		{ UINT64_C(5) << 30, "5.0 GiB" },
		{ UINT64_C(1) << 40, "1.0 TiB" },
		{ UINT64_C(1) << 50, "1024.0 TiB" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char text[SHOW_SIZE_MAX];

		assert_ptr_equal(show_size(rows[i].bytes, text), text);
		assert_string_equal(text, rows[i].expected);
	}
}

static void json_strings(void **state)
{
	static const struct {
		const char *text, *expected;
	} rows[] = {
		{ "", "\"\"" },
		{ "plain", "\"plain\"" },
		{ "a\"b\\c", "\"a\\\"b\\\\c\"" },
		{ "a\nb\x7f", "\"a\\u000ab\\u007f\"" },
		{ "\xc3\xa4\xe2\x82\xac", "\"\xc3\xa4\xe2\x82\xac\"" },
		{ "\xc2\x9b", "\"\\u009b\"" },        /* C1: half of an escape sequence */
		{ "x\xff", "\"x\\ufffd\"" },          /* no UTF-8 */
		{ "\xe2\x82", "\"\\ufffd\\ufffd\"" }, /* half a character */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char *text = NULL;
		size_t size;
		FILE *f = open_memstream(&text, &size);

		assert_non_null(f);
		show_json_string(f, rows[i].text);
		assert_int_equal(fclose(f), 0);
		assert_string_equal(text, rows[i].expected);
		free(text);
	}
}

/* What is said of a snapshot that was taken. @absent must not be in it. */
static void taken(void **state)
{
	const uint64_t now = clock_ns(CLOCK_MONOTONIC), s = UINT64_C(1000000000);
	const struct {
		struct client_snapshot snapshot;
		const char *output;
		uint64_t since_ns;
		const char *expected, *absent;
	} rows[] = {
		{ { .id = "I", .path = "P", .bytes_pt = 2048 },
		  NULL,
		  0,
		  "snapshot I: 2.0 KiB of PT in P\n",
		  "nothing" },
		{ { .id = "I", .path = "P", .bytes_pt = 2048 },
		  "OUT",
		  0,
		  "snapshot I: 2.0 KiB of PT in OUT\n",
		  "whole" },
		{ { .id = "I", .path = "P" },
		  NULL,
		  0,
		  "in P: nothing was being recorded\n",
		  "whole" },
		{ { .id = "I", .path = "P", .n_missing = 1 },
		  NULL,
		  0,
		  " 1 object missing in it",
		  "objects could" },
		{ { .id = "I", .path = "P", .n_missing = 2 },
		  NULL,
		  0,
		  " 2 objects missing in it",
		  "whole" },
		{ { .id = "I",
		    .path = "P",
		    .bytes_pt = 1,
		    .bytes_overwritten = 3072,
		    .taken_ns = now,
		    .complete_since_ns = now - 2 * s },
		  NULL,
		  0,
		  " UTC, its last 2.000 s: 3.0 KiB of PT before that were overwritten",
		  "beginning" },
		/* Of a program: only if it is its own beginning that is gone. */
		{ { .id = "I",
		    .path = "P",
		    .bytes_pt = 1,
		    .bytes_overwritten = 3072,
		    .taken_ns = now,
		    .complete_since_ns = now - 2 * s },
		  NULL,
		  now - 3 * s,
		  "the beginning was overwritten, 3.0 KiB of PT",
		  "its last" },
		{ { .id = "I",
		    .path = "P",
		    .bytes_pt = 1,
		    .bytes_overwritten = 3072,
		    .taken_ns = now,
		    .complete_since_ns = now - 2 * s },
		  NULL,
		  now - 2 * s,
		  "snapshot I",
		  "overwritten" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const char *said;

		logged_begin();
		show_taken(&rows[i].snapshot, rows[i].output, rows[i].since_ns);
		said = logged_end();
		if (!strstr(said, rows[i].expected) || strstr(said, rows[i].absent))
			fail_msg("row %zu: %s", i, said);
	}
}

/* When it was is said in UTC. */
static void when(void **state)
{
	const struct client_snapshot snapshot = { .id = "I",
						  .path = "P",
						  .bytes_overwritten = 1,
						  .taken_ns = clock_ns(CLOCK_MONOTONIC),
						  .complete_since_ns = clock_ns(CLOCK_MONOTONIC) };
	const time_t before = time(NULL);
	struct tm tm = {};
	const char *said;

	(void)state;
	logged_begin();
	show_taken(&snapshot, NULL, 0);
	said = strstr(logged_end(), "complete since ");
	assert_non_null(said);
	assert_non_null(strptime(said + strlen("complete since "), "%Y-%m-%d %H:%M:%S", &tm));
	assert_in_range(timegm(&tm), before - 1, before + 5);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes),
		cmocka_unit_test(json_strings),
		cmocka_unit_test(taken),
		cmocka_unit_test(when),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
