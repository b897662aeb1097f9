/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* How much of each user's a snapshot may have. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "daemon/snapshot/userparts.h"

#define MAX 800u /* the part is 200 then */

#define ASKER 1000u
#define A     1001u
#define B     1002u

static const struct share none;

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
		/* All of root's, and of who asks. */
		{ 800, {}, 0, UINT64_MAX },
		{ 800, { { 0, 900 } }, 0, UINT64_MAX },
		{ 800, { { ASKER, 900 } }, ASKER, UINT64_MAX },
		/* Of another, as much as leaves half to other snapshots. */
		{ 0, {}, A, 400 },
		{ 100, {}, A, 300 },
		{ 100, { { A, 250 } }, A, 50 },
		{ 100, { { A, 300 } }, A, 0 },
		{ 50, { { 0, 20 }, { ASKER, 30 }, { B, 40 } }, A, 260 },
		/* Then no more than his part, whatever others have. */
		{ 300, {}, A, 200 },
		{ 500, { { 0, 900 }, { B, 900 } }, A, 200 },
		{ 500, { { A, 150 }, { B, 900 } }, A, 50 },
		{ 500, { { A, 200 } }, A, 0 },
		{ 500, { { A, 900 } }, A, 0 },
		{ 500, { { A, 900 } }, B, 200 },
		{ UINT64_MAX, { { 0, 1 } }, A, 200 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct userparts parts = {
			.asker = ASKER, .max = MAX, .before = rows[i].before, .others = &none
		};

		print_message("  row %zu\n", i);
		for (size_t k = 0; k < ARRAY_LEN(rows[i].taken); k++)
			userparts_take(&parts, rows[i].taken[k].uid, rows[i].taken[k].bytes);
		assert_int_equal(userparts_left(&parts, rows[i].uid), rows[i].left);
	}
}

/* More than four users have smaller parts. Who may have all is none of them. */
static void a_part_of_many(void **state)
{
	struct userparts parts = { .asker = ASKER, .max = MAX, .before = MAX, .others = &none };

	(void)state;
	userparts_add_user(&parts, 0);
	userparts_add_user(&parts, ASKER);
	for (uid_t uid = A; uid < A + 4; uid++) {
		userparts_add_user(&parts, uid);
		userparts_add_user(&parts, uid);
	}
	assert_int_equal(userparts_left(&parts, A), 200);
	for (uid_t uid = A + 4; uid < A + 8; uid++)
		userparts_add_user(&parts, uid);
	assert_int_equal(userparts_left(&parts, A), 100);
	assert_int_equal(userparts_left(&parts, A + 7), 100);
}

/* What snapshots of somebody else have already is in his part. Of each user there is an eighth of
 * it, however much there is. */
static void a_part_of_which_others_have_some(void **state)
{
	static const struct {
		uint64_t before, others, taken, left;
	} rows[] = {
		{ 800, 50, 0, 150 },  { 800, 50, 100, 50 }, { 800, 50, 150, 0 },
		{ 800, 174, 0, 26 },  { 800, 176, 0, 25 },  { 800, 900, 0, 25 },
		{ 800, 900, 20, 5 },  { 800, 900, 30, 0 },  { 300, 300, 0, 100 },
		{ 300, 300, 90, 10 }, { 390, 300, 0, 25 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct share others = {};
		struct userparts parts = {
			.asker = ASKER, .max = MAX, .before = rows[i].before, .others = &others
		};

		print_message("  row %zu\n", i);
		share_take(&others, A, rows[i].others);
		userparts_take(&parts, A, rows[i].taken);
		assert_int_equal(userparts_left(&parts, A), rows[i].left);
	}
}

static void no_limit(void **state)
{
	struct userparts parts = { .asker = ASKER, .max = UINT64_MAX, .others = &none };

	(void)state;
	userparts_take(&parts, A, UINT64_C(1) << 60);
	assert_true(userparts_left(&parts, A) > UINT64_C(1) << 60);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_left),
		cmocka_unit_test(a_part_of_many),
		cmocka_unit_test(a_part_of_which_others_have_some),
		cmocka_unit_test(no_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
