/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * usage PID DIRECTORY: what the process has of the machine, once a second until it ends, a line
 * each: seconds, KiB of memory at most (since /proc/PID/clear_refs was last given 5), KiB of
 * anonymous memory now, open files, and KiB of disk in DIRECTORY, where a file counts once however
 * many links it has.
 */

#include <dirent.h>
#include <errno.h>
#include <error.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "util/dirs.h"
#include "util/map.h"

#define PERIOD_S 1

/* The field of /proc/PID/status, in KiB. */
static uint64_t field(const char *status, const char *name)
{
	const char *at = strstr(status, name);

	if (!at)
		error(1, 0, "no %s in status", name);
	return strtoull(at + strlen(name), NULL, 10);
}

static unsigned count_fds(const char *proc)
{
	_cleanup_(dirs_closep) DIR *dir = NULL;
	struct dirent *entry;
	char path[64];
	unsigned n = 0;

	(void)snprintf(path, sizeof(path), "%s/fd", proc);
	dir = opendir(path);
	while (dir && dirs_next(dir, &entry) > 0)
		n++;
	return n;
}

/* What goes meanwhile counts or does not. Return: blocks of 512 bytes. */
static uint64_t add_disk(int fd, struct map *seen)
{
	_cleanup_(dirs_closep) DIR *dir = dirs_list(fd);
	struct dirent *entry;
	uint64_t n = 0;
	struct stat st;

	while (dir && dirs_next(dir, &entry) > 0) {
		if (fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (!map_get(seen, st.st_ino))
			n += (uint64_t)st.st_blocks;
		if (map_put(seen, st.st_ino, 1) < 0)
			error(1, ENOMEM, "disk");
		if (S_ISDIR(st.st_mode)) {
			_cleanup_(fd_closep) int inner = dirs_open(fd, entry->d_name);

			n += inner < 0 ? 0 : add_disk(inner, seen);
		}
	}
	return n;
}

static uint64_t disk(const char *path)
{
	_cleanup_(fd_closep) int fd = dirs_open(AT_FDCWD, path);
	struct map seen = {};
	uint64_t n;

	if (fd < 0)
		error(1, -fd, "%s", path);
	n = add_disk(fd, &seen) / 2;
	map_deinit(&seen);
	return n;
}

/* Return: whether the process lives. */
static bool read_status(const char *proc, char *ret_status, size_t size)
{
	_cleanup_(fd_closep) int fd = -1;
	char path[64];
	ssize_t n;

	(void)snprintf(path, sizeof(path), "%s/status", proc);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, ret_status, size - 1);
	if (n <= 0)
		return false;
	ret_status[n] = '\0';
	return strstr(ret_status, "VmRSS:") != NULL;
}

int main(int argc, char **argv)
{
	char proc[32], status[4096];
	struct timespec now;

	if (argc != 3)
		error(2, 0, "usage: usage PID DIRECTORY");
	(void)snprintf(proc, sizeof(proc), "/proc/%d", atoi(argv[1]));
	setvbuf(stdout, NULL, _IOLBF, 0);
	while (read_status(proc, status, sizeof(status))) {
		(void)clock_gettime(CLOCK_MONOTONIC, &now);
		printf("%lld.%02ld %" PRIu64 " %" PRIu64 " %u %" PRIu64 "\n", (long long)now.tv_sec,
		       now.tv_nsec / 10000000, field(status, "VmHWM:"), field(status, "RssAnon:"),
		       count_fds(proc), disk(argv[2]));
		(void)nanosleep(&(struct timespec){ .tv_sec = PERIOD_S }, NULL);
	}
	return 0;
}
