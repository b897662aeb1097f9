/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/proc/birth.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"

static uint64_t read_birth(int dir_fd, const char *path)
{
	_cleanup_(fd_closep) int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC);
	char text[1024];
	const char *end;
	uint64_t t = 0;
	ssize_t n;

	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return 0;
	text[n] = 0;
	/* Its name, in parentheses, may hold anything. */
	end = strrchr(text, ')');
	if (!end ||
	    sscanf(end + 1,
		   " %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s"
		   " %*s %" SCNu64,
		   &t) != 1)
		return 0;
	return t;
}

uint64_t birth_of(uint32_t pid)
{
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/%" PRIu32 "/stat", pid);
	return read_birth(AT_FDCWD, path);
}

uint64_t birth_at(int pid_fd)
{
	return read_birth(pid_fd, "stat");
}
