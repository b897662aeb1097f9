/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What of the code was handed over: byte by byte, across pages, and without memory. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <stdint.h>

#include "daemon/plugin/handover.h"
#include "tests/lib/emufree.h"
#include "tests/lib/failing.h"

/* The last four bytes of a page, and the first four of the next one. */
#define ACROSS UINT64_C(0x401ffc)

static void put(struct shadow *shadow, uint64_t address, const char *bytes, size_t size,
		bool changed)
{
	assert_int_equal(shadow_reserve(shadow, address, size), 0);
	shadow_put(shadow, address, (const uint8_t *)bytes, size, changed);
}

static enum shadow_verdict compare(const struct shadow *shadow, uint64_t address, const char *bytes,
				   size_t size, bool only_changed)
{
	return shadow_compare(shadow, address, (const uint8_t *)bytes, size, only_changed);
}

static void as_it_was_handed_over(void **state)
{
	static const struct {
		const char *what;
		uint64_t address;
		const char *bytes;
		size_t size;
		enum shadow_verdict verdict;
	} rows[] = {
		{ "all of it", ACROSS, "abcdefgh", 8, SHADOW_SAME },
		{ "the end of a page", ACROSS, "abcd", 4, SHADOW_SAME },
		{ "the beginning of the next one", ACROSS + 4, "efgh", 4, SHADOW_SAME },
		{ "no bytes", ACROSS, "", 0, SHADOW_NONE },
		{ "beside it", ACROSS + 8, "abcd", 4, SHADOW_NONE },
		{ "in a page of which nothing was handed over", 0x900000, "abcd", 4, SHADOW_NONE },
		{ "one byte more before it", ACROSS - 1, "xabcdefgh", 9, SHADOW_PART },
		{ "one byte more behind it", ACROSS, "abcdefghx", 9, SHADOW_PART },
		{ "the last byte changed", ACROSS, "abcdefgx", 8, SHADOW_CHANGED },
		{ "the first byte changed", ACROSS, "xbcdefgh", 8, SHADOW_CHANGED },
		{ "changed, and more", ACROSS - 1, "xabcdefgx", 9, SHADOW_CHANGED },
	};
	_cleanup_(shadow_deinit) struct shadow shadow = {};

	(void)state;
	put(&shadow, ACROSS, "abcdefgh", 8, false);
	assert_int_equal(shadow.n_pages, 2);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		print_message("  %s\n", rows[i].what);
		assert_int_equal(
		    compare(&shadow, rows[i].address, rows[i].bytes, rows[i].size, false),
		    rows[i].verdict);
		/* None of it replaced other bytes. */
		assert_int_equal(
		    compare(&shadow, rows[i].address, rows[i].bytes, rows[i].size, true),
		    SHADOW_NONE);
	}
}

static void only_what_replaced_other_bytes(void **state)
{
	_cleanup_(shadow_deinit) struct shadow shadow = {};

	(void)state;
	put(&shadow, ACROSS, "abcdefgh", 8, false);
	put(&shadow, ACROSS + 2, "CDEF", 4, true);
	assert_int_equal(compare(&shadow, ACROSS, "abCDEFgh", 8, false), SHADOW_SAME);
	assert_int_equal(compare(&shadow, ACROSS, "abCDEFgh", 8, true), SHADOW_PART);
	assert_int_equal(compare(&shadow, ACROSS, "xxCDEFxx", 8, true), SHADOW_PART);
	assert_int_equal(compare(&shadow, ACROSS + 2, "CDEF", 4, true), SHADOW_SAME);
	assert_int_equal(compare(&shadow, ACROSS, "abcdefgh", 8, true), SHADOW_CHANGED);
	/* A program that begins anew has them as the first bytes. */
	put(&shadow, ACROSS + 2, "cdef", 4, false);
	assert_int_equal(compare(&shadow, ACROSS, "abCDEFgh", 8, true), SHADOW_NONE);
	assert_int_equal(compare(&shadow, ACROSS, "abcdefgh", 8, false), SHADOW_SAME);
}

/* Pages that are there cost nothing, however full it is. */
static void too_many_pages(void **state)
{
	_cleanup_(shadow_deinit) struct shadow shadow = {};

	(void)state;
	put(&shadow, 0x1000, "ab", 2, false);
	shadow.n_pages = SHADOW_PAGES_MAX;
	assert_int_equal(shadow_reserve(&shadow, 0x2000, 1), -ENOSPC);
	assert_int_equal(shadow_reserve(&shadow, 0x1fff, 2), -ENOSPC);
	assert_int_equal(shadow_reserve(&shadow, 0x1000, 4096), 0);
	shadow.n_pages = SHADOW_PAGES_MAX - 1;
	assert_int_equal(shadow_reserve(&shadow, 0x2000, 1), 0);
	assert_int_equal(shadow_reserve(&shadow, 0x3000, 1), -ENOSPC);
	assert_int_equal(compare(&shadow, 0x1000, "ab", 2, false), SHADOW_SAME);
}

static int hand_over(void *userdata)
{
	struct shadow *shadow = userdata;
	const int r = shadow_reserve(shadow, ACROSS, 8);

	if (r < 0)
		shadow_deinit(shadow);
	return r;
}

static void has_room(void *userdata)
{
	struct shadow *shadow = userdata;

	shadow_put(shadow, ACROSS, (const uint8_t *)"abcdefgh", 8, false);
	assert_int_equal(compare(shadow, ACROSS, "abcdefgh", 8, false), SHADOW_SAME);
	shadow_deinit(shadow);
}

static void calls_that_fail(void **state)
{
	struct shadow shadow = {};

	(void)state;
	failing_each(hand_over, has_room, &shadow);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_it_was_handed_over),
		cmocka_unit_test(only_what_replaced_other_bytes),
		cmocka_unit_test(too_many_pages),
		cmocka_unit_test(calls_that_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
