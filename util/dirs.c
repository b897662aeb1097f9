/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "util/dirs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/copyfile.h"
#include "util/regular.h"

int dirs_open(int at, const char *path)
{
	const int fd = openat(at, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

	return fd < 0 ? -errno : fd;
}

DIR *dirs_list(int fd)
{
	const int own = dirs_open(fd, ".");
	DIR *dir = own < 0 ? NULL : fdopendir(own);

	if (own < 0)
		errno = -own;
	else if (!dir)
		(void)fd_close(own);
	return dir;
}

int dirs_next(DIR *dir, struct dirent **ret_entry)
{
	struct dirent *entry;

	do {
		errno = 0;
		entry = readdir(dir);
	} while (entry && (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")));
	if (!entry)
		return -errno;
	*ret_entry = entry;
	return 1;
}

int dirs_check_empty(int fd)
{
	_cleanup_(dirs_closep) DIR *dir = dirs_list(fd);
	struct dirent *entry;
	int r;

	if (!dir)
		return -errno;
	r = dirs_next(dir, &entry);
	return r > 0 ? -ENOTEMPTY : r;
}

int dirs_make(int at, const char *path, mode_t mode)
{
	char part[PATH_MAX];

	if (strlen(path) >= sizeof(part))
		return -ENAMETOOLONG;
	for (size_t i = 1; path[i - 1]; i++) {
		if (path[i] != '/' && path[i])
			continue;
		memcpy(part, path, i);
		part[i] = 0;
		if (mkdirat(at, part, mode) < 0 && errno != EEXIST)
			return -errno;
	}
	return 0;
}

int dirs_make_public(const char *path)
{
	if (mkdir(path, 0755) < 0)
		return errno == EEXIST ? 0 : -errno;
	return geteuid() == 0 && chmod(path, 0755) < 0 ? -errno : 0;
}

static int copy_tree(int from, int to, const char *last, int depth);

static int copy_entry(int from, int to, const char *name, int depth)
{
	_cleanup_(fd_closep) int in = regular_open(from, name, O_NOFOLLOW), out = -1;

	if (in == -EISDIR) {
		in = dirs_open(from, name);
		if (in < 0)
			return in;
		if (mkdirat(to, name, 0700) < 0)
			return -errno;
		out = dirs_open(to, name);
		return out < 0 ? out : copy_tree(in, out, NULL, depth + 1);
	}
	if (in < 0)
		return in == -EINVAL ? 0 : in;
	out = openat(to, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	return out < 0 ? -errno : copyfile_fd(in, out, NULL);
}

static int copy_tree(int from, int to, const char *last, int depth)
{
	_cleanup_(dirs_closep) DIR *dir = NULL;
	struct dirent *entry;
	bool has_last = false;
	int r;

	if (depth > DIRS_DEPTH_MAX)
		return -ELOOP;
	dir = dirs_list(from);
	if (!dir)
		return -errno;
	while ((r = dirs_next(dir, &entry)) > 0) {
		if (last && strcmp(entry->d_name, last) == 0) {
			has_last = true;
			continue;
		}
		r = copy_entry(from, to, entry->d_name, depth);
		if (r < 0)
			return r;
	}
	return r == 0 && has_last ? copy_entry(from, to, last, depth) : r;
}

int dirs_copy(int from, int to, const char *last)
{
	return copy_tree(from, to, last, 0);
}

int dirs_sync(int fd)
{
	return syncfs(fd) < 0 ? -errno : 0;
}

static int remove_tree(int at, const char *name, int depth);

static int empty_tree(int fd, int depth)
{
	_cleanup_(dirs_closep) DIR *dir = dirs_list(fd);
	struct dirent *entry;
	int r;

	if (!dir)
		return -errno;
	while ((r = dirs_next(dir, &entry)) > 0) {
		r = remove_tree(fd, entry->d_name, depth);
		if (r < 0)
			return r;
	}
	return r;
}

static int remove_tree(int at, const char *name, int depth)
{
	_cleanup_(fd_closep) int fd = -1;
	int r;

	if (unlinkat(at, name, 0) == 0)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return -errno;
	if (depth > DIRS_DEPTH_MAX)
		return -ELOOP;
	fd = dirs_open(at, name);
	if (fd < 0)
		return fd;
	r = empty_tree(fd, depth + 1);
	if (r == 0 && unlinkat(at, name, AT_REMOVEDIR) < 0)
		r = -errno;
	return r;
}

int dirs_empty(int fd)
{
	return empty_tree(fd, 0);
}

int dirs_remove(int at, const char *name)
{
	return remove_tree(at, name, 0);
}
