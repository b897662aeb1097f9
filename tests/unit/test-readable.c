/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Whom the bits of files and directories let read what. The judge is the kernel: a process of that
 * user, in no group but its own, opens the file. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "daemon/proc/readable.h"
#include "tests/lib/tempdir.h"

#define OWNER  60001
#define GROUP  60002
#define MEMBER 60003 /* in the group */
#define OTHER  60004

static char root[TEMPDIR_SIZE];

static int set_up(void **state)
{
	(void)state;
	tempdir_make("readable", root);
	return chmod(root, 0755);
}

static int tear_down(void **state)
{
	(void)state;
	tempdir_remove(root);
	return 0;
}

static const char *in(const char *name)
{
	static char paths[4][256];
	static unsigned i;

	i = (i + 1) % 4;
	(void)snprintf(paths[i], sizeof(paths[i]), "%s/%s", root, name);
	return paths[i];
}

/* Return: whether the kernel lets the user open it. */
static bool opens(uid_t uid, const char *path)
{
	const gid_t group = uid == MEMBER ? GROUP : uid;
	int status;
	pid_t pid;

	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (setgroups(0, NULL) < 0 || setresgid(group, group, group) < 0 ||
		    setresuid(uid, uid, uid) < 0)
			_exit(2);
		_exit(open(path, O_RDONLY | O_CLOEXEC) < 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) < 2);
	return WEXITSTATUS(status) == 0;
}

/* Every mode that matters, of a file and of the directory that it is in. */
static void modes(void **state)
{
	static const uid_t users[] = { OWNER, MEMBER, OTHER };
	unsigned n_yes = 0;

	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(mkdir(in("d"), 0700), 0);
	tempdir_put_text(root, "d/f", "x");
	assert_int_equal(chown(in("d"), OWNER, GROUP), 0);
	assert_int_equal(chown(in("d/f"), OWNER, GROUP), 0);
	for (unsigned i = 0; i < 64; i++) {
		/* Of owner, group and others: may search the directory; may read the file. */
		const mode_t directory = (i & 1 ? 0100 : 0) | (i & 2 ? 010 : 0) | (i & 4 ? 01 : 0),
			     file = (i & 8 ? 0400 : 0) | (i & 16 ? 040 : 0) | (i & 32 ? 04 : 0);

		assert_int_equal(chmod(in("d"), directory), 0);
		assert_int_equal(chmod(in("d/f"), file), 0);
		for (size_t k = 0; k < ARRAY_LEN(users); k++) {
			struct stat st = { .st_ino = 1 };
			const int r = readable_check(users[k], in("d/f"), &st);

			/* It may say no too often, but never yes. */
			assert_true(r == 0 || r == -EACCES);
			assert_true(r < 0 || opens(users[k], in("d/f")));
			assert_true(r < 0 ? st.st_ino == 1 : st.st_size == 1);
			if (users[k] == OWNER)
				assert_int_equal(r == 0, opens(OWNER, in("d/f")));
			n_yes += r == 0;
		}
		assert_int_equal(readable_check(0, in("d/f"), &(struct stat){}), 0);
	}
	assert_true(n_yes > 0);
}

/* user::r-- user:OTHER:--- group::r-- mask::r-- other::r-- */
static void lists(void **state)
{
	static const uint8_t list[] = {
		2,    0,    0, 0, /* version */
		1,    0,    4, 0, 0xff,         0xff,
		0xff, 0xff, /* the owner */
		2,    0,    0, 0, OTHER & 0xff, OTHER >> 8 & 0xff,
		0,    0, /* a user */
		4,    0,    4, 0, 0xff,         0xff,
		0xff, 0xff, /* the group */
		16,   0,    4, 0, 0xff,         0xff,
		0xff, 0xff, /* the mask */
		32,   0,    4, 0, 0xff,         0xff,
		0xff, 0xff, /* others */
	};
	struct stat st;

	(void)state;
	if (geteuid() != 0)
		skip();
	tempdir_put_text(root, "listed", "x");
	assert_int_equal(chown(in("listed"), OWNER, GROUP), 0);
	assert_int_equal(chmod(in("listed"), 0444), 0);
	assert_int_equal(readable_check(OTHER, in("listed"), &st), 0);
	if (setxattr(in("listed"), "system.posix_acl_access", list, sizeof(list), 0) < 0)
		skip();
	assert_false(opens(OTHER, in("listed")));
	assert_int_equal(readable_check(OTHER, in("listed"), &st), -EACCES);
	assert_int_equal(readable_check(OWNER, in("listed"), &st), 0);
}

static void paths(void **state)
{
	struct stat st = { .st_ino = 1 };
	char far[PATH_MAX + 8], name[300];

	(void)state;
	assert_int_equal(mkdir(in("a"), 0755), 0);
	assert_int_equal(mkdir(in("a/b"), 0755), 0);
	tempdir_put_text(root, "a/b/f", "xyz");
	assert_int_equal(chmod(in("a/b/f"), 0644), 0);
	assert_int_equal(symlink("b/f", in("a/relative")), 0);
	assert_int_equal(symlink(in("a/b"), in("absolute")), 0);
	assert_int_equal(symlink("../a/./b//f", in("a/up")), 0);
	assert_int_equal(symlink("loop", in("loop")), 0);
	assert_int_equal(symlink("", in("none")) < 0, true);
	assert_int_equal(mkfifo(in("fifo"), 0644), 0);

	assert_int_equal(readable_check(geteuid(), "a/b/f", &st), -EINVAL);
	assert_int_equal(readable_check(geteuid(), "", &st), -EINVAL);
	assert_int_equal(readable_check(geteuid(), in("a/c"), &st), -ENOENT);
	assert_int_equal(readable_check(geteuid(), in("a/b/f/g"), &st), -ENOTDIR);
	assert_int_equal(readable_check(geteuid(), in("loop"), &st), -ELOOP);
	assert_int_equal(readable_check(geteuid(), in("a"), &st), -ENOEXEC);
	assert_int_equal(readable_check(geteuid(), in("fifo"), &st), -ENOEXEC);
	assert_int_equal(readable_check(geteuid(), "/dev/null", &st), -ENOEXEC);
	memset(far, 'x', sizeof(far) - 1);
	far[0] = '/';
	far[sizeof(far) - 1] = 0;
	assert_int_equal(readable_check(geteuid(), far, &st), -EINVAL);
	memset(name, 'x', sizeof(name) - 1);
	name[0] = '/';
	name[sizeof(name) - 1] = 0;
	assert_int_equal(readable_check(geteuid(), name, &st), -ENAMETOOLONG);
	assert_int_equal(st.st_ino, 1);

	for (size_t i = 0; i < 4; i++) {
		const char *const good[] = { "a/b/f", "a/relative", "absolute/f", "a/up" };

		st = (struct stat){};
		assert_int_equal(readable_check(geteuid(), in(good[i]), &st), 0);
		assert_int_equal(st.st_size, 3);
	}
}

/* A link leads through a directory that the user may not enter. */
static void links(void **state)
{
	struct stat st;

	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(mkdir(in("private"), 0700), 0);
	assert_int_equal(mkdir(in("public"), 0755), 0);
	tempdir_put_text(root, "private/f", "x");
	assert_int_equal(chmod(in("private/f"), 0755), 0);
	assert_int_equal(chown(in("private"), OWNER, OWNER), 0);
	assert_int_equal(symlink("../private/f", in("public/f")), 0);
	assert_int_equal(readable_check(OTHER, in("public/f"), &st), -EACCES);
	assert_int_equal(readable_check(OTHER, in("private/f"), &st), -EACCES);
	assert_int_equal(readable_check(OWNER, in("public/f"), &st), 0);
	assert_false(opens(OTHER, in("public/f")));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(modes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(lists, set_up, tear_down),
		cmocka_unit_test_setup_teardown(paths, set_up, tear_down),
		cmocka_unit_test_setup_teardown(links, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
