/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Outdir: files in one directory, opened by this process and by one that does it for it. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "decoder/cmd/creator.h"
#include "decoder/util/outdir.h"
#include "tests/lib/tempdir.h"
#include "util/dirs.h"
#include "util/fdpass.h"

static void names(void **state)
{
	static const struct {
		const char *name;
		bool is_name;
	} rows[] = {
		{ "a", true },           { "drmemtrace.sh.12.0000.trace", true },
		{ "", false },           { ".", false },
		{ "..", false },         { ".a", false },
		{ "../a", false },       { "a/b", true },
		{ "/tmp/a", false },     { "a/", false },
		{ "a/.b", false },       { ".a/b", false },
		{ "a/..", false },       { "a/b/c", true },
		{ "a//b", false },       { "/a", false },
		{ "a/b/c/d/e/f", true }, { "a/b/c/d/e/f/g", false },
		{ "a/../b", false },
	};
	char name[OUTDIR_NAME_MAX + 1] = "";

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		(void)snprintf(name, sizeof(name), "%s", rows[i].name);
		if (outdir_is_name(name) != rows[i].is_name)
			fail_msg("'%s'", name);
	}
	/* One that does not end. */
	memset(name, 'a', sizeof(name));
	assert_false(outdir_is_name(name));
	name[OUTDIR_NAME_MAX] = '\0';
	assert_true(outdir_is_name(name));
}

/* What @fd, the directory or its socket, answers; @dir_fd is the directory. */
static void try_all(int fd, int dir_fd, bool is_asked)
{
	char too_long[OUTDIR_NAME_MAX + 2], back[4];
	struct stat st;
	int file;

	memset(too_long, 'a', sizeof(too_long) - 1);
	too_long[sizeof(too_long) - 1] = '\0';
	file = outdir_open(fd, "new", true);
	assert_true(file >= 0);
	assert_int_equal(write(file, "abc", 3), 3);
	assert_int_equal(pread(file, back, sizeof(back), 0), 3);
	assert_memory_equal(back, "abc", 3);
	assert_int_equal(fcntl(file, F_GETFD), FD_CLOEXEC);
	(void)fd_close(file);
	assert_int_equal(outdir_open(fd, "new", true), -EEXIST);
	assert_int_equal(outdir_open(fd, "missing", false), -ENOENT);
	assert_int_equal(outdir_open(fd, too_long, true), -ENAMETOOLONG);

	/* One that is there is not emptied. */
	file = outdir_open(fd, "new", false);
	assert_true(file >= 0);
	assert_int_equal(fstat(file, &st), 0);
	assert_int_equal(st.st_size, 3);
	(void)fd_close(file);

	/* In directories that are made for it. */
	file = outdir_open(fd, "one/two/three", true);
	assert_true(file >= 0);
	(void)fd_close(file);
	assert_int_equal(outdir_open(fd, "one/two/three", true), -EEXIST);
	assert_int_equal(outdir_open(fd, "one/three/four", false), -ENOENT);
	assert_int_equal(outdir_open(fd, "new/two", true), -ENOTDIR);
	assert_int_equal(unlinkat(dir_fd, "one/two/three", 0), 0);
	assert_int_equal(unlinkat(dir_fd, "one/two", AT_REMOVEDIR), 0);
	assert_int_equal(unlinkat(dir_fd, "one", AT_REMOVEDIR), 0);

	/* Another name, which no other file may have. */
	assert_int_equal(outdir_rename(fd, "new", "newer"), 0);
	assert_int_equal(outdir_rename(fd, "new", "newest"), -ENOENT);
	file = outdir_open(fd, "new", true);
	assert_true(file >= 0);
	(void)fd_close(file);
	assert_int_equal(outdir_rename(fd, "newer", "new"), -EEXIST);
	assert_int_equal(outdir_rename(fd, "new", "newer"), -EEXIST);
	assert_int_equal(outdir_rename(fd, "new", too_long), -ENAMETOOLONG);
	assert_int_equal(unlinkat(dir_fd, "newer", 0), 0);

	/* What another user of the directory may put there. */
	assert_int_equal(mkfifoat(dir_fd, "fifo", 0600), 0);
	assert_true(outdir_open(fd, "fifo", false) < 0);
	assert_int_equal(symlinkat("new", dir_fd, "link"), 0);
	assert_int_equal(outdir_open(fd, "link", false), -ELOOP);
	assert_int_equal(outdir_open(fd, "link", true), -EEXIST);
	assert_true(outdir_open(fd, ".", false) < 0);

	if (is_asked) {
		assert_int_equal(outdir_open(fd, "../out", true), -EINVAL);
		assert_int_equal(outdir_open(fd, "/tmp/out", true), -EINVAL);
		assert_int_equal(outdir_open(fd, ".hidden", true), -EINVAL);
		assert_int_equal(outdir_open(fd, "", true), -EINVAL);
		assert_int_equal(outdir_rename(fd, "new", "../out"), -EINVAL);
		assert_int_equal(outdir_rename(fd, "../new", "out"), -EINVAL);
		assert_int_equal(outdir_rename(fd, "new", ""), -EINVAL);
	}
	assert_int_equal(unlinkat(dir_fd, "new", 0), 0);
	assert_int_equal(unlinkat(dir_fd, "fifo", 0), 0);
	assert_int_equal(unlinkat(dir_fd, "link", 0), 0);
	assert_int_equal(dirs_check_empty(dir_fd), 0);
}

static void opens(void **state)
{
	char path[TEMPDIR_SIZE];
	struct rlimit before, none;
	struct helper creator;
	int dir_fd;

	(void)state;
	tempdir_make("outdir", path);
	dir_fd = dirs_open(AT_FDCWD, path);
	assert_true(dir_fd >= 0);
	try_all(dir_fd, dir_fd, false);

	assert_int_equal(creator_start(dir_fd, &creator), 0);
	try_all(creator.socket, dir_fd, true);

	/* A file for which there is no descriptor here is not even made. */
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	none.rlim_cur = (rlim_t)creator.socket + 1;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	while (dup(dir_fd) >= 0)
		;
	assert_int_equal(outdir_open(creator.socket, "new", true), -EMFILE);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(faccessat(dir_fd, "new", F_OK, 0), -1);

	helper_stop(&creator);
	assert_int_equal(creator.pid, 0);
	helper_stop(&creator);
	(void)fd_close(dir_fd);
	tempdir_remove(path);
}

/* A process that does not answer as it should. */
static void bad_answers(void **state)
{
	static const struct {
		const char *name;
		int32_t r;
		size_t size;
		bool has_file, is_gone;
		int expected;
	} rows[] = {
		{ "no file", 0, sizeof(struct outdir_answer), false, false, -EMFILE },
		{ "a file and an error", -EACCES, sizeof(struct outdir_answer), true, false,
		  -EACCES },
		{ "too short", 0, 1, true, false, -EPIPE },
		{ "gone", 0, 0, false, true, -EPIPE },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct outdir_answer answer = { .r = rows[i].r };
		_cleanup_(fd_closep) int file = open("/dev/null", O_RDONLY | O_CLOEXEC);
		int sockets[2], before, after;

		print_message("  %s\n", rows[i].name);
		assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets), 0);
		if (rows[i].is_gone)
			sockets[1] = fd_close(sockets[1]);
		else
			assert_int_equal(fdpass_send(sockets[1], &answer, rows[i].size,
						     rows[i].has_file ? file : -1),
					 0);
		before = dup(0);
		(void)fd_close(before);
		assert_int_equal(outdir_open(sockets[0], "a", true), rows[i].expected);
		after = dup(0);
		(void)fd_close(after);
		assert_int_equal(before, after);
		(void)fd_close(sockets[0]);
		(void)fd_close(sockets[1]);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(names),
		cmocka_unit_test(opens),
		cmocka_unit_test(bad_answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
