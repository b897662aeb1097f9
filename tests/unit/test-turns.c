/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Who comes when, and who has how much. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "daemon/tasks/turns.h"

#define U 1000
#define V 1001

static struct turns turns;

static int set_up(void **state)
{
	(void)state;
	turns_init(&turns);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	turns_deinit(&turns);
	return 0;
}

static void add(uint32_t item, uid_t uid, enum turns_line line)
{
	assert_int_equal(turns_add(&turns, item, uid, line), 0);
}

/* Return: the items of a line, which goes. */
static const char *empty_line(uid_t uid, enum turns_line line)
{
	static char text[128];
	uint32_t item;

	text[0] = '\0';
	while ((item = turns_first(&turns, uid, line)) != TURNS_NONE) {
		(void)snprintf(text + strlen(text), sizeof(text) - strlen(text), "%u ", item);
		turns_remove(&turns, item);
	}
	assert_int_equal(turns_last(&turns, uid, line), TURNS_NONE);
	return text;
}

static void lines(void **state)
{
	(void)state;
	add(7, U, TURNS_NEW);
	add(3, U, TURNS_NEW);
	add(0, U, TURNS_NEW);
	add(5, V, TURNS_NEW);
	add(1, U, TURNS_AGAIN);
	assert_int_equal(turns_count(&turns, U), 4);
	assert_int_equal(turns_greediest(&turns), U);
	assert_int_equal(turns_last(&turns, U, TURNS_NEW), 0);
	/* From the middle to the end, from the end, and from the beginning to another line. */
	turns_move(&turns, 3, U, TURNS_NEW);
	turns_move(&turns, 3, U, TURNS_NEW);
	turns_move(&turns, 7, V, TURNS_NEW);
	turns_move(&turns, 1, U, TURNS_SETTLED);
	assert_int_equal(turns_user(&turns, 7), V);
	assert_string_equal(empty_line(U, TURNS_AGAIN), "");
	assert_string_equal(empty_line(U, TURNS_NEW), "0 3 ");
	assert_int_equal(turns_greediest(&turns), V);
	assert_string_equal(empty_line(V, TURNS_NEW), "5 7 ");
	assert_string_equal(empty_line(U, TURNS_SETTLED), "1 ");
	assert_int_equal(turns_count(&turns, U), 0);
	assert_null(turns_next(&turns, 1));
}

static void users(void **state)
{
	const struct turns_user *first, *second;

	(void)state;
	add(0, U, TURNS_NEW);
	add(1, V, TURNS_NEW);
	first = turns_next(&turns, 5);
	second = turns_next(&turns, 5);
	assert_ptr_not_equal(first, second);
	assert_ptr_equal(turns_next(&turns, 5), first);
	assert_int_equal(first->turn, 2);
	turns_leave(&turns, second->uid, 10);
	assert_ptr_equal(turns_next(&turns, 9), first);
	assert_ptr_equal(turns_next(&turns, 10), second);
	/* Nobody is left alone who may be anybody. */
	add(2, TURNS_OTHERS, TURNS_NEW);
	turns_leave(&turns, TURNS_OTHERS, 20);
	turns_leave(&turns, U, 20);
	turns_leave(&turns, V, 20);
	assert_int_equal(turns_next(&turns, 11)->uid, TURNS_OTHERS);
	assert_int_equal(turns_next(&turns, 11)->uid, TURNS_OTHERS);
}

/* Those for whom there is no place count as one; who has nothing needs none. */
static void many_users(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 2 * TURNS_USERS_MAX; i++)
		add(i, U + i, TURNS_NEW);
	assert_int_equal(turns_user(&turns, 0), U);
	assert_int_equal(turns_user(&turns, TURNS_USERS_MAX - 1), TURNS_OTHERS);
	assert_int_equal(turns_count(&turns, U + TURNS_USERS_MAX), TURNS_USERS_MAX + 1);
	assert_int_equal(turns_greediest(&turns), TURNS_OTHERS);
	turns_remove(&turns, 5);
	turns_move(&turns, TURNS_USERS_MAX, U + TURNS_USERS_MAX, TURNS_NEW);
	assert_int_equal(turns_user(&turns, TURNS_USERS_MAX), U + TURNS_USERS_MAX);
	assert_int_equal(turns_first(&turns, U + TURNS_USERS_MAX, TURNS_NEW), TURNS_USERS_MAX);
	assert_int_equal(turns_count(&turns, U + 5), TURNS_USERS_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(lines, set_up, tear_down),
		cmocka_unit_test_setup_teardown(users, set_up, tear_down),
		cmocka_unit_test_setup_teardown(many_users, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
