/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "util/mapsline.h"

static void lines(void **state)
{
	static const struct {
		const char *line, *expected; /* NULL: it is refused */
	} rows[] = {
		{ "55d0-77ef r-xp 0000a000 08:01 4711                       /usr/bin/true",
		  "55d0 77ef r-xp a000 8:1 4711 /usr/bin/true" },
		{ "0-1 ---s 00000000 00:00 0", "0 1 ---s 0 0:0 0 " },
		{ "0-1 rw-p 00000000 00:00 0 ", "0 1 rw-p 0 0:0 0 " },
		{ "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0  [vsyscall]",
		  "ffffffffff600000 ffffffffff601000 --xp 0 0:0 0 [vsyscall]" },
		{ "1-2 -w-s ffffffffffffffff ffffffff:ffffffff 18446744073709551600 a b ",
		  "1 2 -w-s ffffffffffffffff ffffffff:ffffffff 18446744073709551600 a b " },
		{ "1-2 rwxp 0 fd:00 12 /a\\012b (deleted)",
		  "1 2 rwxp 0 fd:0 12 /a\\012b (deleted)" },
		{ "", NULL },
		{ "1", NULL },
		{ "1-", NULL },
		{ "1-2", NULL },
		{ "-2 r-xp 0 0:0 0", NULL },
		{ "2-2 r-xp 0 0:0 0", NULL },
		{ "3-2 r-xp 0 0:0 0", NULL },
		{ "1-2 r-x 0 0:0 0", NULL },
		{ "1-2 r-xpp 0 0:0 0", NULL },
		{ "1-2 r-xp g 0:0 0", NULL },
		{ "1-2 r-xp 0 0 0", NULL },
		{ "1-2 r-xp 0 100000000:0 0", NULL },
		{ "1-2 r-xp 0 0:100000000 0", NULL },
		{ "1-2 r-xp 0 0:0 ", NULL },
		{ "1-2 r-xp 0 0:0 a", NULL },
		{ "1-20000000000000000 r-xp 0 0:0 0", NULL },
		{ "1-2 r-xp 0 0:0 184467440737095516160", NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct mapsline l = { .ino = 7 };
		char line[128], got[256];
		int r;

		(void)snprintf(line, sizeof(line), "%s", rows[i].line);
		r = mapsline_parse(line, &l);
		if (!rows[i].expected) {
			assert_int_equal(r, -EBADMSG);
			assert_int_equal(l.ino, 7);
			continue;
		}
		assert_int_equal(r, 0);
		(void)snprintf(got, sizeof(got),
			       "%" PRIx64 " %" PRIx64 " %c%c%c%c %" PRIx64 " %" PRIx32 ":%" PRIx32
			       " %" PRIu64 " %s",
			       l.start, l.end, l.prot & PROT_READ ? 'r' : '-',
			       l.prot & PROT_WRITE ? 'w' : '-', l.prot & PROT_EXEC ? 'x' : '-',
			       l.flags == MAP_SHARED ? 's' : 'p', l.offset, l.maj, l.min, l.ino,
			       l.name);
		assert_string_equal(got, rows[i].expected);
	}
}

static void names(void **state)
{
	static const char *const rows[][2] = {
		{ "", "" },          { "/a", "/a" },           { "/a\\012b", "/a\nb" },
		{ "\\012", "\n" },   { "\\012\\012", "\n\n" }, { "\\01", "\\01" },
		{ "\\0123", "\n3" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char name[32];

		(void)snprintf(name, sizeof(name), "%s", rows[i][0]);
		mapsline_unescape(name);
		assert_string_equal(name, rows[i][1]);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines),
		cmocka_unit_test(names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
