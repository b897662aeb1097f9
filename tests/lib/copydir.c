/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "tests/lib/copydir.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Of the copy that is being made: nftw() has no other way. */
static const char *copy_to;
static size_t from_length;

static bool is_copied(const char *name)
{
	return name[0] != '.' && strcmp(name, "data") != 0 && strcmp(name, "SHA256SUMS") != 0;
}

/* Return: 0, or an errno. */
static int copy_one(const char *from, const struct stat *st, int type, struct FTW *ftw)
{
	char to[PATH_MAX];

	(void)st;
	if (ftw->level == 1 && !is_copied(from + ftw->base))
		return type == FTW_D ? ENOTSUP : 0;
	if (snprintf(to, sizeof(to), "%s%s", copy_to, from + from_length) >= PATH_MAX)
		return ENAMETOOLONG;
	if (type == FTW_D)
		return mkdir(to, 0700) < 0 ? errno : 0;
	return link(from, to) < 0 ? errno : 0;
}

int copydir_new(const char *from, const char *to)
{
	char absolute[PATH_MAX];
	int r;

	if (!realpath(from, absolute))
		return -errno;
	copy_to = to;
	from_length = strlen(absolute);
	r = nftw(absolute, copy_one, 16, FTW_PHYS);
	return r < 0 ? -errno : -r;
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
