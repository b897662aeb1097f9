/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>

#include "daemon/proc/cpulist.h"

static void lists(void **state)
{
	static const struct {
		const char *text;
		int error;
		uint32_t count, end;
	} rows[] = {
		{ "0\n", 0, 1, 1 },        { "0-3,8\n", 0, 5, 9 },    { "0-4095", 0, 4096, 4096 },
		{ "64,63", 0, 2, 65 },     { "\n", 0, 0, 0 }, /* of offline CPUs, mostly */
		{ "", 0, 0, 0 },           { "3-1", -EBADMSG, 0, 0 }, { "0-4096", -EBADMSG, 0, 0 },
		{ "1-", -EBADMSG, 0, 0 },  { "-1", -EBADMSG, 0, 0 },  { "1;2", -EBADMSG, 0, 0 },
		{ "1,x", -EBADMSG, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct cpulist list = { .end = 77 };

		print_message("  %s\n", rows[i].text);
		assert_int_equal(cpulist_parse(rows[i].text, &list), rows[i].error);
		if (rows[i].error) {
			assert_int_equal(list.end, 77);
			continue;
		}
		assert_int_equal(cpulist_count(&list), rows[i].count);
		assert_int_equal(list.end, rows[i].end);
		if (rows[i].end > 0)
			assert_true(cpulist_has(&list, rows[i].end - 1));
		assert_false(cpulist_has(&list, rows[i].end));
	}
}

static void files(void **state)
{
	struct cpulist list;

	(void)state;
	assert_int_equal(cpulist_read("/nonexistent", &list), -ENOENT);
	assert_int_equal(cpulist_read(CPULIST_ONLINE, &list), 0);
	assert_true(cpulist_count(&list) >= 1);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists),
		cmocka_unit_test(files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
