/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/cmd/sandbox.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lib/tempdir.h"

static int set_up(void **state)
{
	static char dir[TEMPDIR_SIZE];

	tempdir_make("budget", dir);
	*state = dir;
	return 0;
}

static int tear_down(void **state)
{
	tempdir_remove(*state);
	return 0;
}

static uint64_t size_of(const char *dir, const char *name)
{
	char path[160];

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	return budget_size_of(path);
}

/* A directory is as large as the files in it, at any depth and through symbolic links. */
static void sizes(void **state)
{
	static const char bytes[5000];
	const char *dir = *state;
	char path[160];

	tempdir_put(dir, "one", bytes, 1000);
	tempdir_put(dir, "tree/two", bytes, 2000);
	tempdir_put(dir, "tree/deep/er/three", bytes, 3000);
	tempdir_put(dir, "linked", bytes, 5000);
	tempdir_put(dir, "empty", bytes, 0);
	(void)snprintf(path, sizeof(path), "%s/tree/link", dir);
	assert_int_equal(symlink("../linked", path), 0);
	(void)snprintf(path, sizeof(path), "%s/tree/nowhere", dir);
	assert_int_equal(symlink("nothing", path), 0);
	(void)snprintf(path, sizeof(path), "%s/tree/fifo", dir);
	assert_int_equal(mkfifo(path, 0600), 0);

	assert_int_equal(size_of(dir, "one"), 1000);
	assert_int_equal(size_of(dir, "empty"), 0);
	assert_int_equal(size_of(dir, "tree/deep"), 3000);
	assert_int_equal(size_of(dir, "tree"), 2000 + 3000 + 5000);
	assert_int_equal(size_of(dir, "tree/link"), 5000);
	assert_int_equal(size_of(dir, "tree/fifo"), 0);
	assert_int_equal(size_of(dir, "none"), 0);
	assert_int_equal(size_of(dir, "tree/nowhere"), 0);
}

/* What is not on the disk is not read: a hole of terabytes asks for no terabytes of memory. */
static void holes(void **state)
{
	const char *dir = *state;
	char path[160];

	tempdir_put(dir, "hole", "", 0);
	(void)snprintf(path, sizeof(path), "%s/hole", dir);
	assert_int_equal(truncate(path, (off_t)1 << 40), 0);
	assert_in_range(size_of(dir, "hole"), 8 * 512 * 16, 1 << 20);
}

static void budgets(void **state)
{
	(void)state;
	assert_int_equal(budget_for(0, 0, 1), BUDGET_BASE);
	assert_int_equal(budget_for(0, 7, 1), BUDGET_BASE + 7);
	assert_int_equal(budget_for(1000, 7, 1), BUDGET_BASE + 7 + 6000);
	/* There is no more than an off_t can say. */
	assert_int_equal(budget_for(0, 7, 3), BUDGET_BASE + 7 + 2 * BUDGET_THREAD);
	assert_int_equal(budget_for(INT64_MAX / 2, 0, 1), INT64_MAX);
	assert_int_equal(budget_for(INT64_MAX, INT64_MAX, 1), INT64_MAX);
	assert_int_equal(budget_for(0, INT64_MAX, 1), INT64_MAX);
	assert_int_equal(budget_for(0, INT64_MAX - BUDGET_BASE, 1), INT64_MAX);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(sizes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(holes, set_up, tear_down),
		cmocka_unit_test(budgets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
