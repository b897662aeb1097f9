/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "daemon/objects/asker.h"

/* The number of a process that has ended. */
static uint32_t ended(void)
{
	const pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	return (uint32_t)pid;
}

/* Whatever the file is, the process counts. */
static void a_process_that_lives(void **state)
{
	const uint32_t self = (uint32_t)getpid();

	(void)state;
	assert_int_equal(asker_find(self, 1234, 7, "/a/b"), getuid());
	assert_int_equal(asker_find(self, 0, 0, "/c/d"), getuid());
	assert_false(asker_is_unknown(getuid()));
	assert_false(asker_is_unknown(UINT32_MAX));
}

/* Files that may be of one user are one asker's. */
static void a_process_that_has_ended(void **state)
{
	static const struct {
		struct {
			uint64_t dev;
			const char *path;
		} a, b;
		bool same;
	} rows[] = {
		{ { 7, "/a/b" }, { 7, "/c/d" }, true },  { { 7, "/a/b" }, { 8, "/a/b" }, false },
		{ { 0, "/a/b" }, { 0, "/a/c" }, true },  { { 0, "/a/b" }, { 0, "/b/b" }, false },
		{ { 0, "/a/b" }, { 7, "/a/b" }, false }, { { 0, "/a" }, { 0, "/b" }, true },
		{ { 0, "a" }, { 0, "/b" }, true },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const uint64_t a = asker_find(ended(), 0, rows[i].a.dev, rows[i].a.path);
		const uint64_t b = asker_find(0, 0, rows[i].b.dev, rows[i].b.path);

		print_message("  row %zu\n", i);
		assert_true(asker_is_unknown(a) && asker_is_unknown(b));
		assert_int_equal(a == b, rows[i].same);
	}
}

static void an_ended_process_whose_user_is_known(void **state)
{
	(void)state;
	assert_int_equal(asker_find(ended(), 1234, 7, "/a/b"), 1234);
	assert_int_equal(asker_find(0, 1234, 0, "/c/d"), 1234);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_process_that_lives),
		cmocka_unit_test(a_process_that_has_ended),
		cmocka_unit_test(an_ended_process_whose_user_is_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
