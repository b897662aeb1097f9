/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/lib/tempdir.h"
#include "util/dirs.h"

struct fixture {
	char path[TEMPDIR_SIZE];
	int fd;
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	tempdir_make("dirs", f->path);
	f->fd = dirs_open(AT_FDCWD, f->path);
	assert_true(f->fd >= 0);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	(void)fd_close(f->fd);
	assert_int_equal(dirs_remove(AT_FDCWD, f->path), 0);
	assert_int_equal(access(f->path, F_OK), -1);
	free(f);
	return 0;
}

static void put(const struct fixture *f, const char *path, const char *text)
{
	const int fd = openat(f->fd, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	(void)close(fd);
}

static bool exists(const struct fixture *f, const char *path)
{
	return faccessat(f->fd, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static int64_t written_ns(const struct fixture *f, const char *path)
{
	struct stat st;

	assert_int_equal(fstatat(f->fd, path, &st, 0), 0);
	return (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
}

static void a_tree_is_copied(void **state)
{
	struct fixture *f = *state;
	int from, to;

	assert_int_equal(dirs_make(f->fd, "from/a/b", 0700), 0);
	assert_int_equal(dirs_make(f->fd, "from/a/b", 0700), 0);
	assert_int_equal(mkdirat(f->fd, "to", 0700), 0);
	put(f, "from/LAST", "sums");
	put(f, "from/a/b/one", "1");
	put(f, "from/a/LAST", "2");
	put(f, "outside", "secret");
	assert_int_equal(symlinkat("outside", f->fd, "from/link"), 0);
	assert_int_equal(mkfifoat(f->fd, "from/fifo", 0600), 0);
	from = dirs_open(f->fd, "from");
	to = dirs_open(f->fd, "to");

	/* A link is none of ours: it is an error, not a way out of the tree. */
	assert_int_equal(dirs_copy(from, to, "LAST"), -ELOOP);
	assert_false(exists(f, "to/LAST"));
	assert_int_equal(dirs_check_empty(from), -ENOTEMPTY);
	assert_int_equal(dirs_empty(to), 0);
	assert_int_equal(dirs_check_empty(to), 0);

	assert_int_equal(unlinkat(from, "link", 0), 0);
	assert_int_equal(dirs_copy(from, to, "LAST"), 0);
	assert_true(exists(f, "to/a/b/one"));
	assert_true(exists(f, "to/a/LAST"));
	assert_false(exists(f, "to/fifo"));
	assert_true(written_ns(f, "to/LAST") >= written_ns(f, "to/a/b/one"));
	assert_true(written_ns(f, "to/LAST") >= written_ns(f, "to/a/LAST"));
	assert_int_equal(dirs_sync(to), 0);

	/* Nothing that is there is written over. */
	assert_int_equal(dirs_copy(from, to, "LAST"), -EEXIST);
	(void)close(from);
	(void)close(to);
}

static void links_are_removed_not_followed(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(dirs_make(f->fd, "keep/in", 0700), 0);
	assert_int_equal(dirs_make(f->fd, "go/in", 0700), 0);
	put(f, "keep/in/file", "x");
	put(f, "go/in/file", "x");
	assert_int_equal(symlinkat("../keep", f->fd, "go/link"), 0);
	assert_int_equal(dirs_remove(f->fd, "go"), 0);
	assert_false(exists(f, "go"));
	assert_true(exists(f, "keep/in/file"));
	assert_int_equal(dirs_remove(f->fd, "go"), -ENOENT);
	assert_int_equal(dirs_open(f->fd, "keep/in/file"), -ENOTDIR);
}

/* Deeper than any tree of ours. */
static void depth_is_bounded(void **state)
{
	struct fixture *f = *state;
	int from, to;

	assert_int_equal(dirs_make(f->fd, "d/1/2/3/4/5/6/7/8/9", 0700), 0);
	assert_int_equal(mkdirat(f->fd, "to", 0700), 0);
	from = dirs_open(f->fd, "d");
	to = dirs_open(f->fd, "to");
	assert_int_equal(dirs_copy(from, to, NULL), -ELOOP);
	assert_int_equal(dirs_remove(f->fd, "d"), -ELOOP);
	(void)close(from);
	(void)close(to);
	assert_int_equal(dirs_remove(f->fd, "d/1/2/3/4"), 0);
	assert_int_equal(dirs_remove(f->fd, "to/1/2/3/4"), 0);
}

/* One that is there stays as it is. */
static void for_everybody(void **state)
{
	const struct fixture *f = *state;
	const mode_t before = umask(077);
	char path[256];
	struct stat st;

	(void)snprintf(path, sizeof(path), "%s/public", f->path);
	assert_int_equal(dirs_make_public(path), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, geteuid() == 0 ? 0755 : 0700);
	assert_int_equal(chmod(path, 0711), 0);
	assert_int_equal(dirs_make_public(path), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0711);
	(void)snprintf(path, sizeof(path), "%s/none/public", f->path);
	assert_int_equal(dirs_make_public(path), -ENOENT);
	(void)umask(before);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_tree_is_copied, set_up, tear_down),
		cmocka_unit_test_setup_teardown(links_are_removed_not_followed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(depth_is_bounded, set_up, tear_down),
		cmocka_unit_test_setup_teardown(for_everybody, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
