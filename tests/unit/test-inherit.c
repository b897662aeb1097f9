/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Inherit: in a process of its own each row leaves what its paths name, and nothing else. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "decoder/cmd/sandbox.h"

#define PATHS_MAX 4

struct row {
	const char *paths[PATHS_MAX];
	bool stays[8]; /* of descriptors 3 on, which are all open before */
	bool has_stdin;
};

static const struct row rows[] = {
	{ { "perf.data", NULL, "/dev/fd" }, {}, false },
	{ { "-" }, {}, true },
	{ { "/dev/stdin" }, {}, true },
	{ { "/dev/fd/0" }, {}, true },
	{ { "/dev/fd/3" }, { [0] = true }, false },
	{ { "/proc/self/fd/10", "/dev/fd/5", "/dev/fd/5" }, { [2] = true, [7] = true }, false },
	{ { "/dev/fd/4", "/dev/fd/3", "-" }, { [0] = true, [1] = true }, true },
	{ { "/dev/fd/x", "/dev/fd/-4", "/dev/fd/99999999999999999999", "/x/dev/fd/4" }, {}, false },
};

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

/* Return: the number of the first thing that is wrong, or 0. */
static int run(const struct row *row)
{
	struct stat null, in;
	int fds[2];

	/* A standard input that is none of the devices. */
	if (pipe(fds) < 0 || dup2(fds[0], 0) < 0)
		return 100;
	for (int fd = 3; fd < 11; fd++)
		if (fd != fds[0] && dup2(fds[0], fd) < 0)
			return 101;
	if (inherit_only(row->paths, PATHS_MAX) < 0)
		return 102;
	for (int fd = 3; fd < 1000; fd++)
		if (is_open(fd) != (fd < 11 && row->stays[fd - 3]))
			return fd;
	if (!is_open(1) || !is_open(2) || stat("/dev/null", &null) < 0 || fstat(0, &in) < 0)
		return 103;
	if ((in.st_rdev == null.st_rdev && S_ISCHR(in.st_mode)) == row->has_stdin)
		return 104;
	return 0;
}

static void closes(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const pid_t pid = fork();
		int status;

		assert_true(pid >= 0);
		if (pid == 0)
			_exit(run(&rows[i]));
		assert_int_equal(waitpid(pid, &status, 0), pid);
		if (status != 0)
			fail_msg("row %zu: status %#x", i, (unsigned)status);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(closes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
