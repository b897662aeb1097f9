/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "tests/lib/copydir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static bool is_copied(const char *name)
{
	return name[0] != '.' && strcmp(name, "data") != 0 && strcmp(name, "SHA256SUMS") != 0;
}

int copydir_new(const char *from, const char *to)
{
	char target[PATH_MAX], path[PATH_MAX], absolute[PATH_MAX];
	struct dirent *entry;
	DIR *dir;
	int r = 0;

	if (!realpath(from, absolute) || mkdir(to, 0700) < 0)
		return -errno;
	dir = opendir(from);
	if (!dir)
		return -errno;
	while (r == 0 && (entry = readdir(dir))) {
		if (!is_copied(entry->d_name))
			continue;
		if (snprintf(target, sizeof(target), "%s/%s", absolute, entry->d_name) >=
			PATH_MAX ||
		    snprintf(path, sizeof(path), "%s/%s", to, entry->d_name) >= PATH_MAX)
			r = -ENAMETOOLONG;
		else if (symlink(target, path) < 0)
			r = -errno;
	}
	(void)closedir(dir);
	return r;
}

int copydir_write(const char *dir, const char *name, const void *bytes, size_t size)
{
	_cleanup_(fd_closep) int fd = -1;
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s/%s", dir, name) >= PATH_MAX)
		return -ENAMETOOLONG;
	if (unlink(path) < 0 && errno != ENOENT)
		return -errno;
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	while (size > 0) {
		const ssize_t n = write(fd, bytes, size);

		if (n < 0)
			return -errno;
		bytes = (const char *)bytes + n;
		size -= (size_t)n;
	}
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	(void)remove(path);
	return 0;
}

void copydir_remove(const char *dir)
{
	(void)nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}
