/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Rejoining: paths in which each step is a letter, of ten instructions; '.' is the end. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/sink/answer/path.h"

#define TAIL  "ABCDEFGHIJKLMNOPQRST" /* more than REJOIN_STEPS */
#define OTHER "abcdefghijklmnopqrst"

static struct rejoin_path make(const char *letters)
{
	struct path_step *steps = calloc(strlen(letters) + 1, sizeof(*steps));
	struct rejoin_path path = { .steps = steps, .n = strlen(letters) };

	assert_non_null(steps);
	for (size_t i = 0; i < path.n; i++)
		steps[i] = (struct path_step){ .kind = letters[i] == '.' ? PATH_END : PATH_BRANCH,
					       .to = letters[i] == '.' ? 0 : (uint64_t)letters[i],
					       .n_insns = 10 * i };
	return path;
}

static void rejoins(void **state)
{
	static const struct {
		const char *a, *b;
		struct rejoin expected;
	} rows[] = {
		/* One step is another one. */
		{ "pX" TAIL ".",
		  "pY" TAIL ".",
		  { true, { 10, 10 }, 0, { 10, 10 }, { 210, 210 }, true } },
		/* Of another length; only in one. */
		{ "pX" TAIL ".",
		  "pYZW" TAIL ".",
		  { true, { 10, 30 }, 0, { 10, 30 }, { 210, 230 }, true } },
		{ "p" TAIL ".",
		  "pZZ" TAIL ".",
		  { true, { 0, 20 }, 0, { 0, 20 }, { 200, 220 }, true } },
		/* Twice, the second time up to where nothing is known. */
		{ "pX" TAIL "u" OTHER ".",
		  "pY" TAIL "vv" OTHER ".",
		  { true, { 10, 10 }, 1, { 20, 30 }, { 420, 430 }, true } },
		{ "pX" TAIL "uu",
		  "pY" TAIL "vvv",
		  { true, { 10, 10 }, 1, { 20, 30 }, { 220, 230 }, false } },
		/* Fewer equal steps than are needed, unless they are the last ones. */
		{ "pXabcdefgU" TAIL ".",
		  "pYabcdefgV" TAIL ".",
		  { true, { 90, 90 }, 0, { 90, 90 }, { 290, 290 }, true } },
		{ "pXab.", "pYab.", { true, { 10, 10 }, 0, { 10, 10 }, { 30, 30 }, true } },
		{ "pXab", "pYab", { false, {}, 0, { 20, 20 }, { 20, 20 }, false } },
		/* The end alone is no place. */
		{ "pX.", "pYZ.", { false, {}, 0, { 10, 20 }, { 10, 20 }, true } },
		{ "pX" TAIL ".", "p.", { false, {}, 0, { 210, 0 }, { 210, 0 }, true } },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct rejoin_path paths[] = { make(rows[i].a), make(rows[i].b) };
		const struct rejoin *e = &rows[i].expected;
		struct rejoin got;
		size_t first = 0;

		while (rows[i].a[first] == rows[i].b[first])
			first++;
		assert_int_equal(rejoin_find(paths, first, &got), 0);
		if ((got.is_found != e->is_found || got.n_more != e->n_more ||
		     got.is_whole != e->is_whole || got.n_insns[0] != e->n_insns[0] ||
		     got.n_insns[1] != e->n_insns[1] || got.n_different[0] != e->n_different[0] ||
		     got.n_different[1] != e->n_different[1] ||
		     got.n_compared[0] != e->n_compared[0] ||
		     got.n_compared[1] != e->n_compared[1]))
			fail_msg("%s, %s: %d, %d, %zu; %d %d, %d %d, %d %d", rows[i].a, rows[i].b,
				 got.is_found, got.is_whole, got.n_more, (int)got.n_insns[0],
				 (int)got.n_insns[1], (int)got.n_different[0],
				 (int)got.n_different[1], (int)got.n_compared[0],
				 (int)got.n_compared[1]);
		free((struct path_step *)(uintptr_t)paths[0].steps);
		free((struct path_step *)(uintptr_t)paths[1].steps);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = { cmocka_unit_test(rejoins) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
