/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Srcline: the text of source positions. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

#include "base/base.h"
#include "decoder/sink/srcline.h"

struct row {
	const char *title;
	struct ptd_position positions[3];
	size_t n;
	const char *line, *inlines;
};

#define AT(path, number, position, name)                                           \
	{                                                                          \
		.file = path, .line = number, .column = position, .function = name \
	}

static const struct row rows[] = {
	{ "nothing", {}, 0, "", "" },
	{ "a line", { AT("/src/a.c", 7, 3, "f") }, 1, "/src/a.c:7", "f at /src/a.c:7" },
	{ "no function", { AT("/src/a.c", 7, 0, NULL) }, 1, "/src/a.c:7", "/src/a.c:7" },
	{ "no line", { AT("/src/a.c", 0, 0, "f") }, 1, "/src/a.c:?", "f at /src/a.c:?" },
	{ "no file", { AT(NULL, 7, 0, "f") }, 1, "?\?:7", "f at ?\?:7" },
	{ "an inlined function",
	  { AT("/src/a.h", 1, 0, "g"), AT("/src/a.c", 2, 0, "f") },
	  2,
	  "/src/a.h:1",
	  "g at /src/a.h:1 (inlined by) f at /src/a.c:2" },
	{ "what cannot be printed",
	  { AT("/src/\033[2J\n", 1, 0, "\n") },
	  1,
	  "/src/?[2J?:1",
	  "? at /src/?[2J?:1" },
};

static void expect(const struct row *row, enum sink_positions shown, const char *text)
{
	char got[SRCLINE_MAX + 1];
	const size_t n = srcline_format(row->positions, row->n, shown, got);

	got[n] = '\0';
	assert_string_equal(got, text);
}

static void texts(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		print_message("  %s\n", rows[i].title);
		expect(&rows[i], SINK_NO_POSITIONS, "");
		expect(&rows[i], SINK_LINES, rows[i].line);
		expect(&rows[i], SINK_INLINES, rows[i].inlines);
	}
}

static void long_texts_are_cut(void **state)
{
	static char name[3 * SRCLINE_MAX];
	char got[SRCLINE_MAX];

	(void)state;
	memset(name, 'x', sizeof(name) - 1);
	for (size_t i = 0; i < 2; i++) {
		const struct ptd_position positions[] = {
			AT("/src/a.c", 1, 0, name + i * SRCLINE_MAX), AT(name, 1, 0, name)
		};

		assert_int_equal(srcline_format(positions, 2, SINK_INLINES, got), SRCLINE_MAX);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts),
		cmocka_unit_test(long_texts_are_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
