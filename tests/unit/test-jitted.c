/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What the judge believes of code that is in no file: a snapshot with a small jitdump and a piece
 * of memory, and for each row bytes at a place and time, which it has or has not.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lib/jitbuild.h"
#include "tests/lib/jitted.h"
#include "tests/lib/mempages.h"
#include "tests/lib/tempdir.h"

#define OFFSET 1000 /* of the records' clock */

static const struct row {
	const char *name;
	const char *bytes;
	uint64_t time; /* the compiler's */
	uint64_t address;
	uint64_t from, to;
	uint32_t pid;
	bool have;
} rows[] = {
	{ "noted", "abcd", 50, 0x1000, 50, 60, 7, true },
	{ "part of it", "bc", 55, 0x1001, 50, 60, 7, true },
	{ "another process's", "abcd", 50, 0x1000, 0, 0, 8, false },
	{ "other bytes", "abcx", 50, 0x1000, 0, 0, 7, false },
	{ "beyond it", "abcde", 50, 0x1000, 0, 0, 7, false },
	{ "before it was noted", "abcd", 10, 0x1000, 0, 50, 7, true },
	{ "replaced in the middle", "aXYd", 60, 0x1000, 60, UINT64_MAX, 7, true },
	{ "as it was before", "abcd", 60, 0x1000, 0, 0, 7, false },
	{ "not replaced yet", "aXYd", 59, 0x1000, 0, 0, 7, false },
	{ "moved", "abcd", 70, 0x2000, 70, UINT64_MAX, 7, true },
	{ "before it was moved", "abcd", 60, 0x2000, 0, 70, 7, true },
	{ "memory", "mnop", 5, 0x3000, 0, 80, 7, true },
	{ "memory behind what was noted", "p", 99, 0x3003, 0, UINT64_MAX, 7, true },
	{ "other memory", "mnoq", 5, 0x3000, 0, 0, 7, false },
	{ "noted over memory", "QR", 80, 0x3001, 80, UINT64_MAX, 7, true },
	{ "patched without a note", "Qo", 80, 0x3001, 80, UINT64_MAX, 7, true },
	{ "patched with something else", "Qx", 80, 0x3001, 0, 0, 7, false },
	{ "nowhere", "abcd", 50, 0x4000, 0, 0, 7, false },
	{ "around the end", "ab", 50, UINT64_MAX, 0, 0, 7, false },
	{ "noted behind a record without an end of its name", "z", 99, 0x5000, 0, 0, 7, false },
};

static void make(const char *dir)
{
	static struct jitbuild b;

	jitbuild_begin(&b, 0);
	(void)jitbuild_load(&b, 50, 0x1000, 1, "f", "abcd", 4);
	(void)jitbuild_move(&b, 70, 0x1000, 0x2000, 4, 1);
	(void)jitbuild_load(&b, 60, 0x1001, 2, "g", "XY", 2);
	(void)jitbuild_load(&b, 80, 0x3001, 3, "h", "QR", 2);
	(void)jitbuild_record(&b, JITBUILD_LOAD, 90, "no load", 7);
	(void)jitbuild_load(&b, 99, 0x5000, 4, "i", "z", 1);
	b.size -= 1; /* it is cut off */

	tempdir_put(dir, "jit/jit-7.dump", b.bytes, b.size);
	tempdir_put_text(dir, "jit/jit-8.dump", "no dump");
	mempages_put(dir, 7, 0x3000, "mnop", 4);
	tempdir_put_text(dir, "manifest", "a=b\nmonotonic_offset_ns=1000\n");
}

static void every_row(void **state)
{
	_cleanup_(jitted_freep) struct jitted *jitted = NULL;
	char dir[TEMPDIR_SIZE];

	(void)state;
	tempdir_make("jitted", dir);
	make(dir);
	assert_int_equal(jitted_new(dir, &jitted), 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct row *row = &rows[i];
		uint64_t from = 0, to = UINT64_MAX;
		bool have;

		print_message("  %s\n", row->name);
		have = jitted_have(jitted, row->pid, row->time + OFFSET, row->address,
				   (const uint8_t *)row->bytes, strlen(row->bytes), &from, &to);
		assert_int_equal(have, row->have);
		if (!have)
			continue;
		assert_int_equal(from, row->from ? row->from + OFFSET : 0);
		assert_int_equal(to, row->to == UINT64_MAX ? UINT64_MAX : row->to + OFFSET);
	}
	tempdir_remove(dir);
}

static void nothing_there(void **state)
{
	_cleanup_(jitted_freep) struct jitted *jitted = NULL;
	uint64_t from = 0, to = UINT64_MAX;

	(void)state;
	assert_int_equal(jitted_new("/dev/null", &jitted), 0);
	assert_false(jitted_have(jitted, 7, 1, 1, (const uint8_t *)"a", 1, &from, &to));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_row),
		cmocka_unit_test(nothing_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
