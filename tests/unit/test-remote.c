/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The command for the other machine's shell, as a shell of this one reads it. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "ctl/run.h"

static void quoted(void **state)
{
	static const struct {
		const char *arguments[4];
		const char *expected;
	} rows[] = {
		{ { "status" }, "ptctl 'status'" },
		{ { "rm", "a b", "c" }, "ptctl 'rm' 'a b' 'c'" },
		{ { "rm", "" }, "ptctl 'rm' ''" },
		{ { "rm", "'" }, "ptctl 'rm' ''\\'''" },
		{ { "rm", "it's '$x'" }, "ptctl 'rm' 'it'\\''s '\\''$x'\\'''" },
		{ { "rm", "`a` \"b\" \\ \n" }, "ptctl 'rm' '`a` \"b\" \\ \n'" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		_cleanup_(freep) char *command =
		    remote_command((char **)(uintptr_t)rows[i].arguments);

		assert_non_null(command);
		assert_string_equal(command, rows[i].expected);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(quoted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
