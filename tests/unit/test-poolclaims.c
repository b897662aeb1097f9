/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Whose a number of a process is, as the kernel and the other pools say. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/soft/poolclaims.h"
#include "tests/unit/otheruser.h"

#define A 1000u
#define B 1001u

/* Nobody has these numbers: the kernel gives out none as high. */
#define GONE UINT32_C(0x7ffffff0)

static int set_up(void **state)
{
	return poolclaims_new((struct poolclaims **)state);
}

static int tear_down(void **state)
{
	(void)poolclaims_free(*state);
	return 0;
}

/* The number of the pool of a user. */
#define POOL(uid) ((uid) % 100 + ((uid) ? 1 : 0))

static bool believe(struct poolclaims *claims, uid_t uid, uint32_t number)
{
	struct poolclaims_walk walk = poolclaims_begin(claims, POOL(uid), uid, 1);

	return poolclaims_believe(&walk, number);
}

static void what_lives(void **state)
{
	uint32_t a, b;

	if (geteuid() != 0)
		skip();
	a = otheruser_start(A);
	b = otheruser_start(B);
	assert_true(believe(*state, A, a));
	assert_true(believe(*state, A, a));
	assert_false(believe(*state, A, b));
	assert_true(believe(*state, B, b));
	assert_false(believe(*state, A, b));
	assert_false(believe(*state, A, 1));
	assert_false(believe(*state, A, (uint32_t)getpid()));
	/* Root's program may have become another user's. */
	assert_true(believe(*state, 0, a));
	assert_true(believe(*state, A, a));
	otheruser_stop(a);
	otheruser_stop(b);
	/* They are theirs, as long as no other process has the numbers. */
	assert_true(believe(*state, A, a));
	assert_false(believe(*state, B, a));
	assert_true(believe(*state, B, b));
	assert_false(believe(*state, A, b));
}

static void what_is_gone(void **state)
{
	assert_true(believe(*state, A, GONE));
	assert_false(believe(*state, B, GONE));
	assert_true(believe(*state, B, GONE - 1));
	assert_false(believe(*state, A, GONE - 1));
	/* Root's is nobody else's. */
	assert_true(believe(*state, 0, GONE - 2));
	assert_true(believe(*state, 0, GONE));
	assert_false(believe(*state, A, GONE - 2));
	assert_true(believe(*state, A, GONE));

	poolclaims_forget(*state, POOL(A));
	assert_true(believe(*state, B, GONE));
	assert_false(believe(*state, A, GONE - 1));
}

static void what_is_no_number(void **state)
{
	assert_false(believe(*state, A, 0));
	assert_false(believe(*state, A, UINT32_MAX));
	assert_false(believe(*state, 0, UINT32_C(1) << 31));
}

/* What was claimed while it was nobody's is of whoever gets the number. */
static void too_early(void **state)
{
	uint32_t b;

	if (geteuid() != 0)
		skip();
	b = otheruser_start(B);
	assert_true(believe(*state, 0, b)); /* as if nobody had had it then */
	assert_true(believe(*state, B, b));
	otheruser_stop(b);
	assert_true(believe(*state, B, b));
	assert_false(believe(*state, A, b));
}

/* Of too many numbers none is looked up; what the walk knows stays. */
static void lookups(void **state)
{
	struct poolclaims_walk walk = poolclaims_begin(*state, POOL(A), A, 2);

	assert_true(poolclaims_believe(&walk, GONE));
	assert_true(poolclaims_believe(&walk, GONE));
	assert_true(poolclaims_believe(&walk, GONE - 1));
	assert_false(poolclaims_believe(&walk, GONE - 2));
	assert_true(poolclaims_believe(&walk, GONE));
	walk = poolclaims_begin(*state, POOL(A), A, 0);
	assert_false(poolclaims_believe(&walk, GONE));
}

/* Numbers that are gone make room for others; those of other pools stay. */
static void many(void **state)
{
	struct poolclaims_walk walk = poolclaims_begin(*state, POOL(A), A, 4 * POOLCLAIMS_MAX);

	assert_true(believe(*state, B, GONE));
	for (uint32_t i = 1; i < 3 * POOLCLAIMS_MAX; i++)
		assert_true(poolclaims_believe(&walk, GONE - i));
	assert_false(poolclaims_believe(&walk, GONE));
	assert_true(believe(*state, B, GONE));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_lives, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_is_gone, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_is_no_number, set_up, tear_down),
		cmocka_unit_test_setup_teardown(too_early, set_up, tear_down),
		cmocka_unit_test_setup_teardown(lookups, set_up, tear_down),
		cmocka_unit_test_setup_teardown(many, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
