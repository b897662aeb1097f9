/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Regular: of what is at a path that somebody else chose, only a regular file is ever opened. The
 * kernel says by inotify(7) that a FIFO was opened, even for a moment and without waiting.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include "decoder/image/objects.h"
#include "tests/lib/tempdir.h"
#include "util/dirs.h"
#include "util/execfile.h"
#include "util/mapfile.h"
#include "util/regular.h"

static char dir[TEMPDIR_SIZE], fifo[TEMPDIR_SIZE + 8];

static int open_plainly(void)
{
	const int fd = open(fifo, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	(void)fd_close(fd);
	return fd < 0 ? -errno : -EINVAL;
}

static int open_it(void)
{
	return regular_open(AT_FDCWD, fifo, 0);
}

static int read_it(void)
{
	struct mapfile file;

	return mapfile_read(&file, AT_FDCWD, fifo);
}

static int execute_it(void)
{
	struct execfile file;

	return execfile_read(fifo, &file);
}

static int add_it(void)
{
	const struct object *object;
	struct objects *objects;
	int r;

	assert_int_equal(objects_new(NULL, &objects), 0);
	r = objects_add_file(objects, fifo, &object);
	objects_free(objects);
	return r;
}

/* As the directory has it, beside other files. */
static int copy_it(void)
{
	_cleanup_(fd_closep) int from = dirs_open(AT_FDCWD, dir), to = -1;
	char path[] = "/tmp/test-regular-XXXXXX";
	int r;

	assert_non_null(mkdtemp(path));
	to = dirs_open(AT_FDCWD, path);
	r = dirs_copy(from, to, NULL);
	assert_int_equal(faccessat(to, "file", F_OK, 0), 0);
	assert_int_equal(faccessat(to, "fifo", F_OK, 0), -1);
	tempdir_remove(path);
	return r == 0 ? -EINVAL : r;
}

static const struct {
	const char *name;
	int (*run)(void);
	bool opens;
} rows[] = {
	{ "open(2)", open_plainly, true },     { "regular_open", open_it, false },
	{ "mapfile_read", read_it, false },    { "execfile_read", execute_it, false },
	{ "objects_add_file", add_it, false }, { "dirs_copy", copy_it, false },
};

static int setup(void **state)
{
	(void)state;
	tempdir_make("regular", dir);
	tempdir_put_text(dir, "file", "abc");
	tempdir_put_text(dir, "inner/file", "abc");
	(void)snprintf(fifo, sizeof(fifo), "%s/fifo", dir);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	tempdir_remove(dir);
	return 0;
}

static void fifos(void **state)
{
	size_t n_wrong = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		_cleanup_(fd_closep) int watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
		struct inotify_event events[8];
		bool opened;
		int r;

		if (watch < 0 || inotify_add_watch(watch, fifo, IN_OPEN) < 0) {
			print_message("no inotify: %s\n", strerror(errno));
			skip();
		}
		r = rows[i].run();
		opened = read(watch, events, sizeof(events)) > 0;
		if (opened == rows[i].opens && r == -EINVAL)
			continue;
		print_error("%s: %s, %s\n", rows[i].name, opened ? "opened it" : "did not open it",
			    strerror(-r));
		n_wrong++;
	}
	assert_int_equal(n_wrong, 0);
}

static void kinds(void **state)
{
	char path[TEMPDIR_SIZE + 16];
	int dir_fd = dirs_open(AT_FDCWD, dir), fd;
	char bytes[4];

	(void)state;
	assert_true(dir_fd >= 0);
	fd = regular_open(dir_fd, "file", O_NOFOLLOW);
	assert_true(fd >= 0);
	assert_int_equal(read(fd, bytes, sizeof(bytes)), 3);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	assert_int_equal(fcntl(fd, F_GETFL) & (O_ACCMODE | O_NONBLOCK), O_RDONLY);
	(void)fd_close(fd);

	assert_int_equal(regular_open(dir_fd, "inner", 0), -EISDIR);
	assert_int_equal(regular_open(dir_fd, "missing", 0), -ENOENT);
	assert_int_equal(regular_open(AT_FDCWD, "/dev/null", 0), -EINVAL);
	assert_int_equal(symlinkat("file", dir_fd, "link"), 0);
	fd = regular_open(dir_fd, "link", 0);
	assert_true(fd >= 0);
	(void)fd_close(fd);
	assert_int_equal(regular_open(dir_fd, "link", O_NOFOLLOW), -ELOOP);
	(void)snprintf(path, sizeof(path), "%s/link", dir);
	assert_int_equal(unlink(path), 0);
	(void)fd_close(dir_fd);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(fifos, setup, teardown),
		cmocka_unit_test_setup_teardown(kinds, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
