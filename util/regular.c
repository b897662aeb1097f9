/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "util/regular.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

/* Open for reading the file that is open with O_PATH at @path_fd, which stays open. */
static int reopen(int path_fd)
{
	char path[40];
	struct stat st;
	int fd;

	if (fstat(path_fd, &st) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	if (S_ISLNK(st.st_mode))
		return -ELOOP;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", path_fd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int regular_open(int dir_fd, const char *path, int flags)
{
	_cleanup_(fd_closep) int fd = openat(dir_fd, path, O_PATH | O_CLOEXEC | flags);

	return fd < 0 ? -errno : reopen(fd);
}
