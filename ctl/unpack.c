/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "ctl/verb.h"
#include "util/dirs.h"

#define STATUS_NOT_EXECUTED 127

static int cannot_write(const char *directory, int r)
{
	errno = -r;
	log_error("%s: cannot write: %m", directory);
	return EXIT_FAILED;
}

static int check_parent(const char *directory)
{
	_cleanup_(freep) char *copy = strdup(directory);

	if (!copy)
		return cannot_write(directory, -ENOMEM);
	if (faccessat(AT_FDCWD, dirname(copy), W_OK | X_OK, AT_EACCESS) < 0)
		return cannot_write(directory, -errno);
	return EXIT_OK;
}

int unpack_check(const char *directory)
{
	_cleanup_(fd_closep) int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r;

	if (fd < 0)
		return errno == ENOENT ? check_parent(directory) : cannot_write(directory, -errno);
	r = dirs_check_empty(fd);
	return r < 0 ? cannot_write(directory, r) : EXIT_OK;
}

_Noreturn static void become_tar(int fd, const char *directory)
{
	/* In a directory whose name begins with "-". */
	if (chdir(directory) == 0 && dup2(fd, STDIN_FILENO) >= 0)
		(void)execlp("tar", "tar", "--no-same-owner", "-xf", "-", NULL);
	_exit(STATUS_NOT_EXECUTED);
}

static int run_tar(int fd, const char *directory)
{
	const pid_t pid = fork();
	int status;

	if (pid < 0)
		return cannot_write(directory, -errno);
	if (pid == 0)
		become_tar(fd, directory);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return cannot_write(directory, -errno);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return EXIT_OK;
	if (WIFEXITED(status) && WEXITSTATUS(status) == STATUS_NOT_EXECUTED)
		log_error("%s: cannot write: tar cannot be executed", directory);
	else
		log_error("%s: cannot write: tar failed", directory);
	return EXIT_FAILED;
}

/* Wait until the pipe has bytes, which stay in it. Return: 1; 0 if it ends without; or -errno. */
static int wait_for_bytes(int pipe_fd)
{
	int copy[2], r;
	ssize_t n;

	if (pipe2(copy, O_CLOEXEC) < 0)
		return -errno;
	do {
		n = tee(pipe_fd, copy[1], 1, 0);
	} while (n < 0 && errno == EINTR);
	r = n < 0 ? -errno : n > 0;
	(void)close(copy[0]);
	(void)close(copy[1]);
	return r;
}

int unpack_from(int fd, const char *directory, struct unpack *ret_unpack)
{
	int r = unpack_check(directory);

	*ret_unpack = (struct unpack){};
	if (r != EXIT_OK)
		return r;
	if (mkdir(directory, 0700) == 0)
		ret_unpack->is_new = true;
	else if (errno != EEXIST)
		return cannot_write(directory, -errno);
	ret_unpack->path = directory;
	r = wait_for_bytes(fd);
	if (r < 0)
		return cannot_write(directory, r);
	return r > 0 ? run_tar(fd, directory) : EXIT_OK;
}

void unpack_undo(const struct unpack *unpack)
{
	_cleanup_(fd_closep) int fd = -1;

	if (unpack->path)
		fd = open(unpack->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0 && dirs_empty(fd) == 0 && unpack->is_new)
		(void)rmdir(unpack->path);
}
