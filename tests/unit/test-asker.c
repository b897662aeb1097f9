/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
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

static struct askers askers;

/* Whatever the file is, the process counts. */
static void a_process_that_lives(void **state)
{
	const uint32_t self = (uint32_t)getpid();

	(void)state;
	assert_int_equal(asker_find(&askers, self, 1234, 7, "/a/b"), getuid());
	assert_int_equal(asker_find(&askers, self, 0, 0, "/c/d"), getuid());
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
		const uint64_t a = asker_find(&askers, ended(), 0, rows[i].a.dev, rows[i].a.path);
		const uint64_t b = asker_find(&askers, 0, 0, rows[i].b.dev, rows[i].b.path);

		print_message("  row %zu\n", i);
		assert_true(asker_is_unknown(a) && asker_is_unknown(b));
		assert_int_equal(a == b, rows[i].same);
	}
}

static void an_ended_process_whose_user_is_known(void **state)
{
	(void)state;
	assert_int_equal(asker_find(&askers, ended(), 1234, 7, "/a/b"), 1234);
	assert_int_equal(asker_find(&askers, 0, 1234, 0, "/c/d"), 1234);
	askers_deinit(&askers);
}

static uint64_t now_ns; /* 0: it is the machine's */

/* The linker prefers this one. */
int clock_gettime(clockid_t id, struct timespec *ret_time)
{
	if (now_ns == 0)
		return (int)syscall(SYS_clock_gettime, id, ret_time);
	*ret_time = (struct timespec){ .tv_sec = (time_t)(now_ns / 1000000000),
				       .tv_nsec = (long)(now_ns % 1000000000) };
	return 0;
}

/* Who takes much of the event loop's time is not waited for until others had some. */
static void patience_ends(void **state)
{
	static const struct {
		uint64_t asker, at_ms, takes_ms;
		int r;
		bool waits;
	} rows[] = {
		{ 1000, 1000, 30, 0, true },       { 1000, 1100, 21, 0, true },
		{ 1000, 1200, 0, 0, false },       { 1001, 1200, 49, 0, true },
		{ 1001, 1300, 0, 0, true },        { ASKER_ROOT, 1300, 100, 0, true },
		{ ASKER_ROOT, 1400, 0, 0, true },  { 1000, 1531, 10, 0, true },
		{ 1000, 1600, 10, 0, true },       { 1002, 3000, 1, -ETIMEDOUT, true },
		{ 1002, 9000, 0, 0, false },       { 1000, 9000, 1, -ENOENT, true },
		{ 1002, 13002, 1, 0, true },       { ASKER_ROOT, 14000, 1, -ETIMEDOUT, true },
		{ ASKER_ROOT, 14001, 1, 0, true },
	};
	struct patience patience = {};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		print_message("  row %zu\n", i);
		now_ns = rows[i].at_ms * 1000000;
		assert_int_equal(patience_begin(&patience, rows[i].asker), rows[i].waits);
		now_ns += rows[i].takes_ms * 1000000;
		if (rows[i].waits)
			assert_int_equal(patience_end(&patience, rows[i].asker, rows[i].r),
					 rows[i].r);
	}
	now_ns = 0;
	patience_deinit(&patience);
}

/* What a process's number stands for is looked up again after a moment. */
static void users_are_remembered(void **state)
{
	struct askers remembered = {};

	(void)state;
	now_ns = 1000000000;
	assert_int_equal(asker_find(&remembered, (uint32_t)getpid(), 0, 0, "/a"), getuid());
	assert_int_equal(map_put(&remembered.users, (uint64_t)getpid(), 4711), 0);
	assert_int_equal(asker_find(&remembered, (uint32_t)getpid(), 0, 0, "/a"), 4711);
	now_ns += 251000000;
	assert_int_equal(asker_find(&remembered, (uint32_t)getpid(), 0, 0, "/a"), getuid());
	now_ns = 0;
	askers_deinit(&remembered);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_process_that_lives),
		cmocka_unit_test(a_process_that_has_ended),
		cmocka_unit_test(an_ended_process_whose_user_is_known),
		cmocka_unit_test(patience_ends),
		cmocka_unit_test(users_are_remembered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
