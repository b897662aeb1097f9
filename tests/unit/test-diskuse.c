/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/spool/diskuse.h"
#include "tests/lib/failing.h"
#include "tests/lib/tempdir.h"
#include "util/dirs.h"

#define FILE_SIZE 40000u /* of several blocks, whatever the file system's is */

struct fixture {
	char dir[TEMPDIR_SIZE];
	int dir_fd;
	struct diskuse *use;
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	tempdir_make("diskuse", f->dir);
	f->dir_fd = dirs_open(AT_FDCWD, f->dir);
	assert_true(f->dir_fd >= 0);
	assert_int_equal(diskuse_new(&f->use), 0);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	(void)diskuse_free(f->use);
	tempdir_remove(f->dir);
	(void)close(f->dir_fd);
	free(f);
	return 0;
}

static void put(const struct fixture *f, const char *path)
{
	char text[FILE_SIZE + 1];

	memset(text, 'x', FILE_SIZE);
	text[FILE_SIZE] = 0;
	tempdir_put_text(f->dir, path, text);
}

static void put_link(const struct fixture *f, const char *from, const char *to)
{
	assert_int_equal(linkat(f->dir_fd, from, f->dir_fd, to, 0), 0);
}

/* On the disk. */
static uint64_t size(const struct fixture *f, const char *path)
{
	struct stat st;

	assert_int_equal(fstatat(f->dir_fd, path, &st, AT_SYMLINK_NOFOLLOW), 0);
	return (uint64_t)st.st_blocks * 512;
}

static int open_dir(const struct fixture *f, const char *path)
{
	const int fd = dirs_open(f->dir_fd, path);

	assert_true(fd >= 0);
	return fd;
}

static void add_snapshot(struct fixture *f, const char *path)
{
	const int fd = open_dir(f, path);

	assert_int_equal(diskuse_add_snapshot(f->use, fd), 0);
	(void)close(fd);
}

static bool is(const char *name, void *userdata)
{
	return strcmp(name, userdata) == 0;
}

static void add_store(struct fixture *f, char *needed)
{
	const int fd = open_dir(f, "store");

	assert_int_equal(diskuse_add_store(f->use, fd, is, needed), 0);
	(void)close(fd);
}

static void assert_room(struct diskuse_amount room, uint64_t bytes, uint64_t inodes)
{
	assert_int_equal(room.bytes, bytes);
	assert_int_equal(room.inodes, inodes);
}

/* "shared" is in both snapshots and the store, "kept" and "given-up" are the first one's and the
 * store's, "alone" only the store's, "elsewhere" is the first one's and somebody's. */
static void counted_once(void **state)
{
	struct fixture *f = *state;
	uint64_t one, all;

	put(f, "A/own");
	put(f, "A/deep/shared");
	put(f, "A/kept");
	put(f, "A/given-up");
	put(f, "A/elsewhere");
	put(f, "B/own");
	put(f, "store/alone");
	put_link(f, "A/deep/shared", "B/shared");
	put_link(f, "A/deep/shared", "store/shared");
	put_link(f, "A/kept", "store/kept");
	put_link(f, "A/given-up", "store/given-up");
	put_link(f, "A/elsewhere", "elsewhere");
	one = size(f, "A/own");
	all = 7 * one + size(f, "A") + size(f, "A/deep") + size(f, "B");
	assert_true(one >= FILE_SIZE);

	add_snapshot(f, "A");
	add_snapshot(f, "B");
	assert_room(diskuse_taken(f->use), all - one, 9);
	add_store(f, (char[]){ "kept" });
	/* Nobody needs "alone", so it is as good as gone. */
	assert_room(diskuse_taken(f->use), all - one, 9);
	assert_int_equal(diskuse_in_snapshots(f->use), all - one);
	assert_room(diskuse_own(f->use, 0), 2 * one + size(f, "A") + size(f, "A/deep"), 4);
	assert_room(diskuse_remove(f->use, 0), 2 * one + size(f, "A") + size(f, "A/deep"), 4);
	assert_room(diskuse_taken(f->use), 4 * one + size(f, "B"), 5);
	/* "kept" is only the store's now, and "elsewhere" is of nobody who is counted. */
	assert_int_equal(diskuse_in_snapshots(f->use), 2 * one + size(f, "B"));
	assert_room(diskuse_remove(f->use, 0), 0, 0);
	assert_room(diskuse_remove(f->use, 1), 2 * one + size(f, "B"), 3);
	assert_room(diskuse_taken(f->use), 2 * one, 2);
}

/* Holes take no room. */
static void holes(void **state)
{
	struct fixture *f = *state;
	int fd;

	put(f, "A/file");
	fd = openat(f->dir_fd, "A/file", O_WRONLY | O_CLOEXEC);
	assert_int_equal(ftruncate(fd, 1 << 30), 0);
	(void)close(fd);
	add_snapshot(f, "A");
	assert_true(diskuse_taken(f->use).bytes < 1 << 20);
}

static void too_deep(void **state)
{
	struct fixture *f = *state;
	int fd;

	put(f, "A/1/2/3/4/file");
	put(f, "B/6/7/8/9/file");
	assert_int_equal(renameat(f->dir_fd, "B", f->dir_fd, "A/1/2/3/4/5"), 0);
	fd = open_dir(f, "A");
	assert_int_equal(diskuse_add_snapshot(f->use, fd), -ELOOP);
	assert_int_equal(diskuse_add_snapshot(f->use, -1), -EBADF);
	assert_int_equal(renameat(f->dir_fd, "A/1/2/3/4/5", f->dir_fd, "B"), 0);
	(void)close(fd);
}

static int count_all(void *userdata)
{
	struct fixture *f = userdata;
	_cleanup_(diskuse_freep) struct diskuse *use = NULL;
	_cleanup_(fd_closep) int store = dirs_open(f->dir_fd, "store");
	_cleanup_(fd_closep) int a = dirs_open(f->dir_fd, "A");
	int r;

	if (store < 0 || a < 0)
		return store < 0 ? store : a;
	r = diskuse_new(&use);
	if (r == 0)
		r = diskuse_add_snapshot(use, a);
	if (r == 0)
		r = diskuse_add_store(use, store, is, (char[]){ "shared" });
	if (r == 0)
		f->use = TAKE(use);
	return r;
}

static void all_counted(void *userdata)
{
	struct fixture *f = userdata;

	assert_int_equal(diskuse_taken(f->use).inodes, 5);
	f->use = diskuse_free(f->use);
}

/* What could not be seen is not taken for nothing. */
static void failing(void **state)
{
	struct fixture *f = *state;

	put(f, "A/own");
	put(f, "A/deep/shared");
	put(f, "A/deep/kept");
	tempdir_put_text(f->dir, "store/none", "");
	put_link(f, "A/deep/shared", "store/shared");
	f->use = diskuse_free(f->use);
	failing_each(count_all, all_counted, f);
}

/* Several snapshots have names of one file. */
static void shared_by_several(void **state)
{
	struct fixture *f = *state;
	static const char *const dirs[] = { "a", "b", "c" };
	uint64_t file;

	put(f, "a/own");
	put(f, "a/shared");
	put(f, "c/again");
	put(f, "b/other");
	put_link(f, "a/shared", "b/shared");
	put_link(f, "c/again", "a/again");
	for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
		_cleanup_(fd_closep) int fd = open_dir(f, dirs[i]);

		assert_int_equal(diskuse_add_snapshot(f->use, fd), 0);
	}
	file = size(f, "a/own");
	assert_int_equal(diskuse_in_snapshots(f->use), diskuse_taken(f->use).bytes);
	assert_room(diskuse_own(f->use, 0), file + size(f, "a"), 2);
	assert_room(diskuse_own(f->use, 1), file + size(f, "b"), 2);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(shared_by_several, set_up, tear_down),
		cmocka_unit_test_setup_teardown(counted_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(holes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(too_deep, set_up, tear_down),
		cmocka_unit_test_setup_teardown(failing, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
