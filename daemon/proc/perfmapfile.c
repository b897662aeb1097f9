/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/proc/perfmapfile.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "daemon/proc/process.h"

#define STATUS_SIZE 4096 /* the line stands before those that may be long */

/* File systems and the kernel's account of processes round times, by less than this. */
#define ROUNDING_NS INT64_C(1000000000)

/* Find the number that the process has for itself, the line's last. Return: 0 or -ESRCH. */
static int read_own_number(int pid_fd, uint32_t *ret_pid)
{
	_cleanup_(fd_closep) int fd = openat(pid_fd, "status", O_RDONLY | O_CLOEXEC);
	const char *line, *end, *last;
	char text[STATUS_SIZE];
	ssize_t n;

	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return -ESRCH;
	text[n] = '\0';
	line = strstr(text, "\nNSpid:");
	end = line ? strchr(line + 1, '\n') : NULL;
	last = end ? memrchr(line, '\t', (size_t)(end - line)) : NULL;
	return last && sscanf(last, "%" SCNu32, ret_pid) == 1 ? 0 : -ESRCH;
}

/* Return: whether the file was last written before the process was started: it is a map of an
 * earlier process with the same number. */
static bool is_of_another(int fd, int pid_fd)
{
	const int64_t booted = (int64_t)(clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_BOOTTIME));
	const uint64_t ticks = process_birth(pid_fd), per_second = (uint64_t)sysconf(_SC_CLK_TCK);
	struct stat st;

	if (ticks == 0 || fstat(fd, &st) < 0)
		return false;
	return (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec + ROUNDING_NS <
	       booted + (int64_t)(ticks * (1000000000 / per_second));
}

int perfmapfile_open(int pid_fd)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC | O_NOFOLLOW,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	_cleanup_(fd_closep) int root_fd = -1;
	char path[64];
	uint32_t pid;
	int fd, r;

	r = read_own_number(pid_fd, &pid);
	if (r < 0)
		return r;
	/* Of a process that has ended, there is no root any more. */
	root_fd = openat(pid_fd, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root_fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	(void)snprintf(path, sizeof(path), "tmp/perf-%" PRIu32 ".map", pid);
	fd = (int)syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
	if (fd < 0)
		return -errno;
	if (is_of_another(fd, pid_fd)) {
		(void)fd_close(fd);
		return -ENOENT;
	}
	return fd;
}
