/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* How much of each user's a snapshot may have. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "daemon/snapshot/userparts.h"

#define MAX 800u /* the part is 200 then, and a quarter of it 50 */

#define A 1001u
#define B 1002u
#define C 1003u

static void what_is_left(void **state)
{
	static const struct {
		uint64_t before;
		struct {
			uid_t uid;
			uint64_t bytes;
		} taken[3];
		uid_t uid;
		uint64_t left;
	} rows[] = {
		/* All of root's. */
		{ 800, {}, 0, UINT64_MAX },
		{ 800, { { 0, 900 } }, 0, UINT64_MAX },
		/* Of another, as much as leaves half to other snapshots. */
		{ 0, {}, A, 400 },
		{ 100, {}, A, 300 },
		{ 100, { { A, 250 } }, A, 50 },
		{ 100, { { A, 300 } }, A, 0 },
		{ 50, { { 0, 20 }, { C, 30 }, { B, 40 } }, A, 260 },
		/* Then no more than a quarter of its part, whatever others have. */
		{ 300, {}, A, 100 },
		{ 390, {}, A, 50 },
		{ 500, { { 0, 900 }, { B, 900 } }, A, 50 },
		{ 500, { { A, 30 }, { B, 900 } }, A, 20 },
		{ 500, { { A, 50 } }, A, 0 },
		{ 500, { { A, 900 } }, A, 0 },
		{ 500, { { A, 900 } }, B, 50 },
		{ UINT64_MAX, { { 0, 1 } }, A, 50 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct userparts parts = { .max = MAX, .before = rows[i].before };

		print_message("  row %zu\n", i);
		for (size_t k = 0; k < ARRAY_LEN(rows[i].taken); k++)
			userparts_take(&parts, rows[i].taken[k].uid, rows[i].taken[k].bytes);
		assert_int_equal(userparts_left(&parts, rows[i].uid), rows[i].left);
	}
}

/* More than four users have smaller parts. Who may have all is none of them. */
static void a_part_of_many(void **state)
{
	struct userparts parts = { .max = MAX, .before = MAX };

	(void)state;
	userparts_add_user(&parts, 0);
	for (uid_t uid = A; uid < A + 4; uid++) {
		userparts_add_user(&parts, uid);
		userparts_add_user(&parts, uid);
	}
	assert_int_equal(userparts_left(&parts, A), 50);
	for (uid_t uid = A + 4; uid < A + 8; uid++)
		userparts_add_user(&parts, uid);
	assert_int_equal(userparts_left(&parts, A), 25);
	assert_int_equal(userparts_left(&parts, A + 7), 25);
}

static void no_limit(void **state)
{
	struct userparts parts = { .max = UINT64_MAX };

	(void)state;
	userparts_take(&parts, A, UINT64_C(1) << 60);
	assert_true(userparts_left(&parts, A) > UINT64_C(1) << 60);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_left),
		cmocka_unit_test(a_part_of_many),
		cmocka_unit_test(no_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
