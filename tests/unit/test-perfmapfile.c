/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The perf map of a process: in its own /tmp, with its own number. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "daemon/helper/collector/work.h"

static int open_pid(pid_t pid)
{
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/%d", pid);
	return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* Return: whether it was written. */
static bool put_map(pid_t pid)
{
	char path[64];
	FILE *f;

	(void)snprintf(path, sizeof(path), "/tmp/perf-%d.map", pid);
	f = fopen(path, "w");
	return f && fputs("1000 10 f\n", f) >= 0 && fclose(f) == 0;
}

/* Run a process that has a map, in namespaces of its own if @is_apart; its map is then called as
 * that of process 1. Return: its number here; 0: that is not allowed. */
static pid_t start(bool is_apart)
{
	pid_t pid = 0, apart;
	char answer = 'n';
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	apart = fork();
	if (apart == 0) {
		if (is_apart && unshare(CLONE_NEWNS | CLONE_NEWPID) < 0)
			_exit(0);
		pid = fork();
		if (pid == 0) {
			const bool is_ready =
			    (!is_apart ||
			     (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
			      mount("none", "/tmp", "tmpfs", 0, NULL) == 0)) &&
			    put_map(getpid());

			(void)!write(fds[1], is_ready ? "y" : "n", 1);
			while (is_ready)
				(void)pause();
			_exit(0);
		}
		if (pid < 0 || read(fds[0], &answer, 1) != 1 || answer != 'y')
			_exit(0);
		(void)!write(fds[1], &pid, sizeof(pid));
		_exit(0);
	}
	(void)waitpid(apart, NULL, 0);
	(void)close(fds[1]);
	if (read(fds[0], &pid, sizeof(pid)) != (ssize_t)sizeof(pid))
		pid = 0;
	(void)close(fds[0]);
	return pid;
}

static void is_where_the_process_has_it(void **state)
{
	(void)state;
	for (int is_apart = 0; is_apart < 2; is_apart++) {
		const pid_t pid = start(is_apart);
		char path[64];
		struct stat st;
		int pid_fd, fd;

		if (is_apart && pid == 0) {
			print_message("no namespaces of its own for a process\n");
			continue;
		}
		pid_fd = open_pid(pid);
		assert_true(pid_fd >= 0);
		fd = perfmapfile_open(pid_fd);
		assert_true(fd >= 0);
		assert_int_equal(fstat(fd, &st), 0);
		assert_int_equal(st.st_size, strlen("1000 10 f\n"));
		(void)close(fd);
		(void)snprintf(path, sizeof(path), "/tmp/perf-%d.map", pid);
		assert_int_equal(unlink(path), is_apart ? -1 : 0);
		assert_int_equal(kill(pid, SIGKILL), 0);
		(void)close(pid_fd);
	}
}

static void of_this_process(void **state)
{
	char path[64];
	struct stat st;
	int pid_fd = open_pid(getpid()), fd;

	(void)state;
	(void)snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	assert_int_equal(perfmapfile_open(pid_fd), -ENOENT);
	assert_int_equal(symlink("/etc/passwd", path), 0);
	fd = perfmapfile_open(pid_fd);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	(void)close(fd);
	assert_int_equal(unlink(path), 0);
	(void)close(pid_fd);
}

/* A file that an earlier process with the same number left behind is no map of this one. */
static void of_an_earlier_process(void **state)
{
	const struct timespec long_ago[2] = { { .tv_sec = 1000000000 }, { .tv_sec = 1000000000 } };
	const int pid_fd = open_pid(getpid());
	char path[64];
	int fd;

	(void)state;
	(void)snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	assert_true(put_map(getpid()));
	assert_int_equal(utimensat(AT_FDCWD, path, long_ago, 0), 0);
	assert_int_equal(perfmapfile_open(pid_fd), -ENOENT);
	/* It begins it anew. */
	assert_true(put_map(getpid()));
	fd = perfmapfile_open(pid_fd);
	assert_true(fd >= 0);
	(void)close(fd);
	assert_int_equal(unlink(path), 0);
	(void)close(pid_fd);
}

static void of_one_that_has_ended(void **state)
{
	const pid_t pid = fork();
	int pid_fd;

	(void)state;
	if (pid == 0)
		_exit(0);
	pid_fd = open_pid(pid);
	assert_int_equal(waitid(P_PID, (id_t)pid, &(siginfo_t){}, WEXITED | WNOWAIT), 0);
	assert_int_equal(perfmapfile_open(pid_fd), -ESRCH);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(perfmapfile_open(pid_fd), -ESRCH);
	(void)close(pid_fd);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_where_the_process_has_it),
		cmocka_unit_test(of_this_process),
		cmocka_unit_test(of_an_earlier_process),
		cmocka_unit_test(of_one_that_has_ended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
