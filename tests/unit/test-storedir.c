/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Files of snapshots that become one with the store's. Copies are tested with the object store. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "daemon/spool/storedir.h"
#include "tests/lib/tempdir.h"
#include "util/dirs.h"

#define HASH "00ff"

struct fixture {
	char dir[TEMPDIR_SIZE];
	int dir_fd, store_fd;
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	tempdir_make("store", f->dir);
	f->dir_fd = dirs_open(AT_FDCWD, f->dir);
	assert_int_equal(mkdirat(f->dir_fd, "store", 0700), 0);
	f->store_fd = dirs_open(f->dir_fd, "store");
	assert_true(f->store_fd >= 0);
	tempdir_put_text(f->dir, "one/kcore", "code");
	tempdir_put_text(f->dir, "two/kcore", "code");
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	tempdir_remove(f->dir);
	(void)close(f->dir_fd);
	(void)close(f->store_fd);
	free(f);
	return 0;
}

/* Of a file that has @n_links names. */
static ino_t inode(const struct fixture *f, const char *path, nlink_t n_links)
{
	struct stat st;

	assert_int_equal(fstatat(f->dir_fd, path, &st, 0), 0);
	assert_int_equal(st.st_nlink, n_links);
	return st.st_ino;
}

static bool none_needed(const char *hash, void *userdata)
{
	(void)hash;
	(void)userdata;
	return false;
}

static void count(const char *hash, uint64_t bytes, void *userdata)
{
	uint64_t *sum = userdata;

	assert_int_not_equal(hash[0], '\0');
	*sum += bytes;
}

static uint64_t sweep(const struct fixture *f)
{
	uint64_t used = 0;

	assert_int_equal(storedir_sweep(f->store_fd, none_needed, count, &used), 0);
	return used;
}

/* It is there once, as long as one of them is. */
static void shared(void **state)
{
	struct fixture *f = *state;

	storedir_share(f->store_fd, HASH, f->dir_fd, "one/kcore");
	assert_int_equal(inode(f, "one/kcore", 2), inode(f, "store/" HASH, 2));
	storedir_share(f->store_fd, HASH, f->dir_fd, "two/kcore");
	assert_int_equal(inode(f, "one/kcore", 3), inode(f, "two/kcore", 3));
	assert_int_equal(dirs_remove(f->dir_fd, "one"), 0);
	assert_int_equal(sweep(f), 0);
	assert_int_equal(inode(f, "two/kcore", 2), inode(f, "store/" HASH, 2));
	assert_int_equal(dirs_remove(f->dir_fd, "two"), 0);
	assert_int_equal(sweep(f), 0);
	assert_false(storedir_has(f->store_fd, HASH));
}

static bool all_needed(const char *hash, void *userdata)
{
	(void)hash;
	(void)userdata;
	return true;
}

/* What no snapshot has is counted by what it takes, holes or not. */
static void counted(void **state)
{
	struct fixture *f = *state;
	uint64_t alone = 0;
	char path[128];
	struct stat st;

	tempdir_put_text(f->dir, "store/alone", "x");
	tempdir_put_text(f->dir, "store/holes", "x");
	(void)snprintf(path, sizeof(path), "%s/store/holes", f->dir);
	assert_int_equal(truncate(path, 1 << 30), 0);
	storedir_share(f->store_fd, HASH, f->dir_fd, "one/kcore");
	assert_int_equal(fstatat(f->store_fd, "alone", &st, 0), 0);
	assert_int_equal(storedir_alone(f->store_fd, "alone"), (uint64_t)st.st_blocks * 512);
	assert_true(storedir_alone(f->store_fd, "holes") < 1 << 20);
	assert_int_equal(storedir_alone(f->store_fd, HASH), 0);
	assert_int_equal(storedir_alone(f->store_fd, "none"), 0);
	assert_int_equal(storedir_sweep(f->store_fd, all_needed, count, &alone), 0);
	assert_int_equal(alone, storedir_alone(f->store_fd, "alone") +
				    storedir_alone(f->store_fd, "holes"));
	assert_int_equal(sweep(f), 0);
	assert_false(storedir_has(f->store_fd, "alone"));
	assert_true(storedir_has(f->store_fd, HASH));
}

/* Then each has its own, and nothing else is left there. */
static void not_to_be_shared(void **state)
{
	struct fixture *f = *state;
	const int fd = dirs_open(f->dir_fd, "two");

	assert_int_equal(mkdirat(f->store_fd, HASH, 0700), 0);
	storedir_share(f->store_fd, HASH, f->dir_fd, "one/kcore");
	(void)inode(f, "one/kcore", 1);
	storedir_share(-1, HASH, f->dir_fd, "two/kcore");
	(void)inode(f, "two/kcore", 1);
	assert_int_equal(unlinkat(fd, "kcore", 0), 0);
	assert_int_equal(dirs_check_empty(fd), 0);
	(void)close(fd);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(shared, set_up, tear_down),
		cmocka_unit_test_setup_teardown(counted, set_up, tear_down),
		cmocka_unit_test_setup_teardown(not_to_be_shared, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
