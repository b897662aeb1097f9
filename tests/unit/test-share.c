/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The shares of users: who may take how much, and who has to give. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "daemon/share/share.h"

#define MAX 800u /* the part is 200 then, the reserve 100 */

#define A      1000u
#define B      1001u
#define C      1002u
#define NOBODY UINT32_MAX

static void who_may_take(void **state)
{
	static const struct {
		struct share_user users[5];
		uid_t asks;
		uint64_t amount;
		bool allowed;
	} rows[] = {
		/* Alone, all but the reserve. */
		{ {}, A, 700, true },
		{ {}, A, 701, false },
		{ { { A, 600, {} } }, A, 100, true },
		{ { { A, 600, {} } }, A, 101, false },
		/* Root takes all. */
		{ {}, 0, 800, true },
		{ {}, 0, 801, false },
		{ { { A, 700, {} } }, 0, 101, false },
		/* Up to their part, a user also takes of the reserve. */
		{ { { A, 700, {} } }, B, 100, true },
		{ { { A, 700, {} } }, B, 101, false },
		{ { { A, 700, {} }, { B, 50, {} } }, B, 50, true },
		{ { { A, 500, {} }, { B, 150, {} } }, B, 51, false },
		{ { { A, 500, {} }, { B, 150, {} } }, B, 50, true },
		{ { { A, 400, {} }, { B, 150, {} } }, B, 150, true },
		{ { { A, 400, {} }, { B, 150, {} } }, B, 151, false },
		/* With five users the part is a fifth. */
		{ { { A, 160, {} }, { B, 180, {} }, { C, 180, {} }, { 5, 180, {} } },
		  6,
		  100,
		  true },
		{ { { 9, 10, {} }, { B, 270, {} }, { C, 270, {} }, { 5, 100, {} }, { A, 80, {} } },
		  A,
		  70,
		  true },
		{ { { 9, 10, {} }, { B, 270, {} }, { C, 270, {} }, { 5, 10, {} }, { A, 140, {} } },
		  A,
		  21,
		  false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct share share = {};

		print_message("  row %zu\n", i);
		for (size_t k = 0; k < ARRAY_LEN(rows[i].users); k++)
			share_take(&share, rows[i].users[k].uid, rows[i].users[k].taken);
		assert_int_equal(share_allows(&share, MAX, rows[i].asks, rows[i].amount),
				 rows[i].allowed);
	}
}

static void no_limit_is_no_limit(void **state)
{
	struct share share = {};

	(void)state;
	share_take(&share, A, UINT64_C(1) << 60);
	assert_true(share_allows(&share, UINT64_MAX, A, UINT64_C(1) << 60));
	assert_false(share_allows(&share, UINT64_MAX, A, UINT64_MAX));
	assert_false(share_allows(&share, 0, A, 1));
	assert_true(share_allows(&(struct share){}, 0, A, 0));
}

static void who_gives(void **state)
{
	static const struct {
		struct share_user users[5];
		uid_t giver;
	} rows[] = {
		{ {}, NOBODY },
		{ { { A, 700, {} } }, NOBODY }, /* nobody has touched the reserve */
		{ { { A, 700, {} }, { B, 1, {} } }, A },
		{ { { A, 400, {} }, { B, 350, {} } }, A },
		{ { { A, 350, {} }, { B, 400, {} } }, B },
		/* Root does not give, and who has their part or less does not either. */
		{ { { 0, 600, {} }, { A, 200, {} } }, NOBODY },
		{ { { 0, 590, {} }, { A, 201, {} } }, A },
		{ { { A, 200, {} }, { B, 200, {} }, { C, 200, {} }, { 5, 200, {} } }, NOBODY },
		{ { { A, 200, {} }, { B, 200, {} }, { C, 200, {} }, { 5, 180, {} }, { 6, 1, {} } },
		  A },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		uid_t giver = NOBODY;
		struct share share = {};

		print_message("  row %zu\n", i);
		for (size_t k = 0; k < ARRAY_LEN(rows[i].users); k++)
			share_take(&share, rows[i].users[k].uid, rows[i].users[k].taken);
		assert_int_equal(share_giver(&share, MAX, &giver), rows[i].giver != NOBODY);
		assert_int_equal(giver, rows[i].giver);
		assert_int_equal(share_exceeds(&share, MAX, 0), false);
	}
}

/* One user has all but the reserve. Nine others come, one after the other, each of whom wants all.
 * Each has their part as soon as those who have more gave. */
static void nobody_is_left_out(void **state)
{
	struct share share = {};
	uid_t giver;

	(void)state;
	for (uid_t uid = 1; uid <= 10; uid++) {
		const uint64_t part = MAX / (uid > SHARE_PART ? uid : SHARE_PART);

		for (unsigned n_refused = 0; n_refused < 2; n_refused++) {
			while (share_allows(&share, MAX, uid, 1)) {
				share_take(&share, uid, 1);
				n_refused = 0;
			}
			share_refuse(&share, MAX, uid, 1);
			while (share_giver(&share, MAX, &giver))
				share_give(&share, giver, 1);
			share.needed = 0;
		}
		print_message("  %u: %u\n", (unsigned)uid, (unsigned)share.users[uid - 1].taken);
		assert_true(share.taken <= MAX);
		for (uid_t i = 0; i < uid; i++)
			assert_true(share.users[i].taken + 1 >= part);
	}
}

/* What is in somebody's part is made room for, even if it is more than the reserve. */
static void more_than_the_reserve(void **state)
{
	struct share share = {};
	uid_t giver = 0;

	(void)state;
	share_take(&share, A, 700);
	assert_false(share_allows(&share, MAX, B, 150));
	share_refuse(&share, MAX, B, 150);
	share_refuse(&share, MAX, A, 300);
	share_refuse(&share, MAX, B, 201);
	while (share_giver(&share, MAX, &giver)) {
		assert_int_equal(giver, A);
		share_give(&share, A, 1);
	}
	assert_int_equal(share.taken, 650);
	assert_true(share_allows(&share, MAX, B, 150));
	share_restart(&share);
	assert_int_equal(share.needed, 0);
}

static void what_is_given_back(void **state)
{
	struct share share = {};

	(void)state;
	share_give(&share, A, 10);
	assert_int_equal(share.taken, 0);
	share_take(&share, A, 10);
	share_take(&share, B, 5);
	share_give(&share, A, 3);
	assert_int_equal(share.taken, 12);
	share_give(&share, A, 100);
	assert_int_equal(share.taken, 5);
	share_refuse(&share, MAX, A, 1);
	share_restart(&share);
	assert_int_equal(share.taken, 0);
	assert_int_equal(share.users[0].uid, A);
	assert_int_equal(share.users[0].refused[SHARE_REASON_SHARE], 1);
	assert_int_equal(share.users[1].taken, 0);
}

/* More users than there are accounts count as one, and what they give back is theirs. */
static void more_users_than_accounts(void **state)
{
	struct share share = {};
	uint64_t sum = 0, n_refused = 0, n_taken_back = 0;

	(void)state;
	for (uid_t uid = 1; uid <= 200; uid++) {
		share_take(&share, uid, 1);
		share_count_taken_back(&share, uid);
	}
	assert_int_equal(share.n_users, SHARE_USERS_MAX);
	assert_int_equal(share.taken, 200);
	share_give(&share, 1, 1);
	share_take(&share, 150, 1); /* has no account of its own though one is empty */
	share_give(&share, 150, 2);
	for (uid_t uid = 2; uid <= 200; uid++)
		share_give(&share, uid, 1);
	for (size_t i = 0; i < share.n_users; i++) {
		sum += share.users[i].taken;
		n_refused += share_n_refused(&share.users[i]);
		n_taken_back += share.users[i].refused[SHARE_REASON_TAKEN_BACK];
	}
	assert_int_equal(sum, share.taken);
	assert_int_equal(sum, 0);
	assert_int_equal(n_refused, 200);
	assert_int_equal(n_taken_back, 200);
	share_take(&share, 300, 7);
	assert_true(share_exceeds(&share, 20, 300));
	assert_false(share_exceeds(&share, 20, 301));
}

/* Root is one user more, and may have too much, only where it has a part. */
static void a_part_for_root(void **state)
{
	struct share share = {};

	(void)state;
	share_take(&share, 0, 201);
	for (uid_t uid = A; uid < A + 4; uid++)
		share_take(&share, uid, 161);
	assert_int_equal(share_part(&share, MAX, A), 200);
	assert_false(share_exceeds(&share, MAX, 0));
	assert_false(share_exceeds(&share, MAX, A));
	share.root_has_part = true;
	assert_int_equal(share_part(&share, MAX, A), 160);
	assert_int_equal(share_part(&share, MAX, 0), 160);
	assert_true(share_exceeds(&share, MAX, 0));
	assert_true(share_exceeds(&share, MAX, A));
	share_give(&share, 0, 41);
	assert_false(share_exceeds(&share, MAX, 0));
	share_restart(&share);
	assert_true(share.root_has_part);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_may_take),
		cmocka_unit_test(no_limit_is_no_limit),
		cmocka_unit_test(who_gives),
		cmocka_unit_test(nobody_is_left_out),
		cmocka_unit_test(more_than_the_reserve),
		cmocka_unit_test(what_is_given_back),
		cmocka_unit_test(more_users_than_accounts),
		cmocka_unit_test(a_part_for_root),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
