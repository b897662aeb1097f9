/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Files beside the executable of this test. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "util/beside.h"

#define FAR_UP "../../../../../../../../../../../../"

static void places(void **state)
{
	static const struct row {
		const char *label, *first, *second;
		int mode, r;
		const char *path; /* what it ends with */
	} rows[] = {
		{ "beside it", "test-beside", "nothing", X_OK, 0, "/test-beside" },
		{ "at the second place", "nothing", "test-beside", X_OK, 0, "/test-beside" },
		{ "at both", "test-beside", "./test-beside", F_OK, 0, "/test-beside" },
		{ "above it", "nothing", FAR_UP "dev/null", F_OK, 0, "/dev/null" },
		{ "no program", "nothing", FAR_UP "dev/null", X_OK, BESIDE_NOWHERE, "/dev/null" },
		{ "nowhere", "nothing", "../lib/nothing", F_OK, BESIDE_NOWHERE, "/lib/nothing" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct row *row = &rows[i];
		const char *const two[] = { row->first, row->second };
		_cleanup_(freep) char *path = NULL;

		if (beside_find(two, 2, row->mode, &path) != row->r)
			fail_msg("%s: another outcome", row->label);
		if (path[0] != '/' || strstr(path, "..") || strlen(path) < strlen(row->path) ||
		    strcmp(path + strlen(path) - strlen(row->path), row->path) != 0 ||
		    strstr(path, "/./"))
			fail_msg("%s: %s", row->label, path);
	}
}

static void too_long(void **state)
{
	_cleanup_(freep) char *path = NULL;
	char name[PATH_MAX + 1];
	const char *const place = name;

	(void)state;
	memset(name, 'x', PATH_MAX);
	name[PATH_MAX] = 0;
	assert_int_equal(beside_find(&place, 1, F_OK, &path), BESIDE_NOWHERE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(places),
		cmocka_unit_test(too_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
