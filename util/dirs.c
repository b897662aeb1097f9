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

/* Begin to write the files of a tree to the disk, or wait until they are there. @n_left: how many
 * files it may have. Return: 0; -E2BIG if it has more; or another negative errno. */
static int sync_tree(int fd, bool wait, unsigned *n_left, int depth)
{
	_cleanup_(dirs_closep) DIR *dir = depth > DIRS_DEPTH_MAX ? NULL : dirs_list(fd);
	struct dirent *entry;
	int r;

	if (!dir)
		return depth > DIRS_DEPTH_MAX ? -ELOOP : -errno;
	while ((r = dirs_next(dir, &entry)) > 0) {
		_cleanup_(fd_closep) int in = regular_open(fd, entry->d_name, O_NOFOLLOW);

		if (in == -EISDIR) {
			in = dirs_open(fd, entry->d_name);
			r = in < 0 ? in : sync_tree(in, wait, n_left, depth + 1);
		} else if (in < 0) {
			r = in;
		} else if ((*n_left)-- == 0) {
			r = -E2BIG;
		} else if (!wait) {
			/* A file system that cannot do so writes them when they are waited for. */
			(void)!sync_file_range(in, 0, 0, SYNC_FILE_RANGE_WRITE);
		} else if (fsync(in) < 0) {
			r = -errno;
		}
		if (r < 0)
			return r;
	}
	return r == 0 && wait && fsync(fd) < 0 ? -errno : r;
}

int dirs_sync(int fd)
{
	int r = 0;

	for (int wait = 0; wait < 2 && r == 0; wait++)
		r = sync_tree(fd, wait, &(unsigned){ DIRS_FSYNC_MAX }, 0);
	if (r == -E2BIG)
		r = syncfs(fd) < 0 ? -errno : 0;
	return r;
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
