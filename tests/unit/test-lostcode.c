/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The pages in which changes were lost: they are whole, do not touch, and become one range behind
 * the limit.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdint.h>

#include "daemon/objects/codeprogram.h"

static void add(struct lostcode *lost, uint64_t address, uint64_t size, uint64_t time)
{
	assert_int_equal(lostcode_add(lost, address, size, time), 0);
}

static void expect(const struct lostcode *lost, size_t i, uint64_t start, uint64_t last,
		   uint64_t time)
{
	assert_true(i < lost->ranges.n);
	assert_int_equal(lost->ranges.items[i].start, start);
	assert_int_equal(lost->ranges.items[i].last, last);
	assert_int_equal(lost->ranges.items[i].time, time);
}

static void whole_pages_that_do_not_touch(void **state)
{
	_cleanup_(lostcode_deinit) struct lostcode lost = {};

	(void)state;
	add(&lost, 0x5000, 0, 1);
	assert_int_equal(lost.ranges.n, 0);
	add(&lost, 0x5fff, 1, 50);
	add(&lost, 0x1800, 16, 40);
	add(&lost, 0x8ffe, 3, 60);
	assert_int_equal(lost.ranges.n, 3);
	expect(&lost, 0, 0x1000, 0x1fff, 40);
	expect(&lost, 1, 0x5000, 0x5fff, 50);
	expect(&lost, 2, 0x8000, 0x9fff, 60);
	/* Beside one and inside of one; then over all that is between them. */
	add(&lost, 0x4000, 1, 70);
	add(&lost, 0x9010, 1, 30);
	assert_int_equal(lost.ranges.n, 3);
	expect(&lost, 1, 0x4000, 0x5fff, 50);
	expect(&lost, 2, 0x8000, 0x9fff, 30);
	add(&lost, 0x2000, 0x6000, 80);
	assert_int_equal(lost.ranges.n, 1);
	expect(&lost, 0, 0x1000, 0x9fff, 30);
}

static void up_to_the_end_of_addresses(void **state)
{
	_cleanup_(lostcode_deinit) struct lostcode lost = {};

	(void)state;
	add(&lost, UINT64_MAX, 1, 5);
	add(&lost, 0, 1, 6);
	assert_int_equal(lost.ranges.n, 2);
	expect(&lost, 0, 0, 0xfff, 6);
	expect(&lost, 1, UINT64_MAX - 0xfff, UINT64_MAX, 5);
	add(&lost, 0, UINT64_MAX, 9);
	assert_int_equal(lost.ranges.n, 1);
	expect(&lost, 0, 0, UINT64_MAX, 5);
}

static void behind_the_limit_they_are_one(void **state)
{
	_cleanup_(lostcode_deinit) struct lostcode lost = {}, other = {};

	(void)state;
	for (uint64_t i = LOSTCODE_MAX; i > 0; i--)
		add(&lost, i * 0x2000, 1, 100 + i);
	assert_int_equal(lost.ranges.n, LOSTCODE_MAX);
	add(&lost, 0x10, 1, 500);
	assert_int_equal(lost.ranges.n, 2);
	expect(&lost, 0, 0, 0xfff, 500);
	expect(&lost, 1, 0x2000, LOSTCODE_MAX * 0x2000 + 0xfff, 101);
	add(&other, 0x1000, 1, 7);
	assert_int_equal(lostcode_add_all(&lost, &other), 0);
	assert_int_equal(lost.ranges.n, 1);
	expect(&lost, 0, 0, LOSTCODE_MAX * 0x2000 + 0xfff, 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_pages_that_do_not_touch),
		cmocka_unit_test(up_to_the_end_of_addresses),
		cmocka_unit_test(behind_the_limit_they_are_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
