/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Which threads take longer than a limit from one place to another, and which do not. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "daemon/trigger/probe.h"

#define B MOMENT_BEGIN
#define E MOMENT_END
#define G MOMENT_GONE
#define X MOMENT_EXEC

/* The limit is 10. A row ends with a moment of time 0. */
struct row {
	const char *name;
	bool has_return;
	uint64_t now;
	uint32_t tid; /* that is found; 0: none */
	uint64_t time;
	struct moment moments[8];
};

static const struct row rows[] = {
	{ "nothing", false, 1000, 0, 0, {} },
	{ "in time", false, 1000, 0, 0, { { B, 1, 1, 100, 0 }, { E, 1, 1, 110, 0 } } },
	{ "late", false, 1000, 1, 110, { { B, 1, 1, 100, 0 }, { E, 1, 1, 111, 0 } } },
	{ "no end, and the time is not over", false, 110, 0, 0, { { B, 1, 1, 100, 0 } } },
	{ "no end", false, 111, 1, 110, { { B, 1, 1, 100, 0 } } },
	{ "an end alone", false, 1000, 0, 0, { { E, 1, 1, 100, 0 } } },
	{ "begun anew",
	  false,
	  1000,
	  0,
	  0,
	  { { B, 1, 1, 100, 0 }, { B, 1, 1, 108, 0 }, { E, 1, 1, 117, 0 } } },
	{ "begun anew, and late",
	  false,
	  1000,
	  1,
	  118,
	  { { B, 1, 1, 100, 0 }, { B, 1, 1, 108, 0 }, { E, 1, 1, 119, 0 } } },
	{ "the end of another thread",
	  false,
	  1000,
	  1,
	  110,
	  { { B, 1, 1, 100, 0 }, { B, 1, 2, 101, 0 }, { E, 1, 2, 102, 0 }, { E, 1, 2, 103, 0 } } },
	{ "the first of two",
	  false,
	  1000,
	  2,
	  111,
	  { { B, 1, 1, 100, 0 }, { B, 1, 2, 101, 0 }, { E, 1, 1, 102, 0 }, { B, 1, 1, 103, 0 } } },
	{ "added out of order",
	  false,
	  1000,
	  0,
	  0,
	  { { E, 1, 1, 105, 0 }, { E, 1, 1, 125, 0 }, { B, 1, 1, 120, 0 }, { B, 1, 1, 100, 0 } } },
	{ "the thread has ended", false, 1000, 0, 0, { { B, 1, 1, 100, 0 }, { G, 0, 1, 105, 0 } } },
	{ "another thread has ended",
	  false,
	  1000,
	  1,
	  110,
	  { { B, 1, 1, 100, 0 }, { G, 0, 2, 105, 0 } } },
	{ "another program",
	  false,
	  1000,
	  0,
	  0,
	  { { B, 1, 2, 100, 0 }, { B, 1, 3, 101, 0 }, { X, 1, 0, 105, 0 } } },
	{ "another program in another process",
	  false,
	  1000,
	  2,
	  110,
	  { { B, 1, 2, 100, 0 }, { X, 2, 0, 105, 0 } } },
	{ "a return", true, 1000, 0, 0, { { B, 1, 1, 100, 0x80 }, { E, 1, 1, 105, 0x88 } } },
	{ "calls of itself count for the whole",
	  true,
	  1000,
	  1,
	  110,
	  { { B, 1, 1, 100, 0x80 },
	    { B, 1, 1, 105, 0x70 },
	    { E, 1, 1, 107, 0x78 },
	    { E, 1, 1, 112, 0x88 } } },
	{ "calls of itself, in time",
	  true,
	  1000,
	  0,
	  0,
	  { { B, 1, 1, 100, 0x80 },
	    { B, 1, 1, 105, 0x70 },
	    { E, 1, 1, 107, 0x78 },
	    { E, 1, 1, 109, 0x88 },
	    { B, 1, 1, 109, 0x80 },
	    { E, 1, 1, 115, 0x88 } } },
	{ "left without a return, and entered again",
	  true,
	  1000,
	  0,
	  0,
	  { { B, 1, 1, 100, 0x80 }, { B, 1, 1, 108, 0x80 }, { E, 1, 1, 117, 0x88 } } },
	{ "called from itself by a jump to its beginning",
	  true,
	  1000,
	  1,
	  110,
	  { { B, 1, 1, 100, 0x80 }, { B, 1, 1, 105, 0x78 }, { E, 1, 1, 107, 0x80 } } },
};

static void find(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct passages passages = { .limit_ns = 10, .has_return = rows[i].has_return };
		struct moment hit = {};

		print_message("  %s\n", rows[i].name);
		for (const struct moment *m = rows[i].moments; m->time_ns > 0; m++)
			assert_int_equal(passages_add(&passages, m), 0);
		assert_int_equal(passages_find(&passages, rows[i].now, &hit), rows[i].tid != 0);
		assert_int_equal(hit.tid, rows[i].tid);
		assert_int_equal(hit.time_ns, rows[i].time);
		passages_deinit(&passages);
	}
}

/* The same is found, and not earlier, when the moments are looked at after each unit of time. */
static void find_in_pieces(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct passages passages = { .limit_ns = 10, .has_return = rows[i].has_return };
		struct moment hit = {};
		bool is_found = false;

		print_message("  %s\n", rows[i].name);
		for (uint64_t now = 99; now <= rows[i].now && !is_found; now++) {
			for (const struct moment *m = rows[i].moments; m->time_ns > 0; m++)
				if (m->time_ns == now)
					assert_int_equal(passages_add(&passages, m), 0);
			is_found = passages_find(&passages, now, &hit);
		}
		assert_int_equal(is_found, rows[i].tid != 0);
		assert_int_equal(hit.tid, rows[i].tid);
		assert_int_equal(hit.time_ns, rows[i].time);
		passages_deinit(&passages);
	}
}

static void forget(void **state)
{
	struct passages passages = { .limit_ns = 10 };
	const struct moment moments[] = { { B, 1, 1, 100, 0 }, { B, 1, 2, 200, 0 } };
	struct moment hit;

	(void)state;
	assert_int_equal(passages_add(&passages, &moments[0]), 0);
	assert_false(passages_find(&passages, 105, &hit));
	assert_int_equal(passages_add(&passages, &moments[1]), 0);
	passages_forget(&passages);
	assert_false(passages_find(&passages, 1000, &hit));
	passages_deinit(&passages);
}

/* There is a limit, and the others are found nevertheless. */
static void many(void **state)
{
	struct passages passages = { .limit_ns = 10000 };
	struct moment hit;

	(void)state;
	for (uint32_t i = 1; i <= PASSAGES_MAX + 1; i++)
		assert_int_equal(passages_add(&passages, &(struct moment){ B, 1, i, 100 + i, 0 }),
				 0);
	for (uint32_t i = 1; i < PASSAGES_MAX; i++)
		assert_int_equal(passages_add(&passages, &(struct moment){ E, 1, i, 5000 + i, 0 }),
				 0);
	assert_true(passages_find(&passages, 100000, &hit));
	assert_int_equal(hit.tid, PASSAGES_MAX);
	passages_deinit(&passages);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(find),
		cmocka_unit_test(find_in_pieces),
		cmocka_unit_test(forget),
		cmocka_unit_test(many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
