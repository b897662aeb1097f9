/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/proc/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "util/dirs.h"
#include "util/map.h"
#include "util/textfile.h"

#define PROCS "cgroup.procs"

/* A walk over groups. */
struct walk {
	struct map *pids;
	const char *name; /* of the groups that are looked for */
	unsigned n_groups;
	bool found;
};

int cgroup_open_root(void)
{
	static const char *const roots[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/unified",
					     "/sys/fs/cgroup/systemd" };

	for (size_t i = 0; i < ARRAY_LEN(roots); i++) {
		const int fd = dirs_open(AT_FDCWD, roots[i]);

		if (fd < 0)
			continue;
		/* Where several hierarchies are mounted, the directory above them is none. */
		if (faccessat(fd, PROCS, R_OK, AT_EACCESS) == 0)
			return fd;
		(void)fd_close(fd);
	}
	return -ENOENT;
}

bool cgroup_name_is_good(const char *name)
{
	const bool is_path = name[0] == '/';

	for (const char *at = name + is_path;; at = strchr(at, '/') + 1) {
		const size_t n = strcspn(at, "/");

		if (n == 0 || n > NAME_MAX || (n <= 2 && strncmp(at, "..", n) == 0))
			return false;
		if (at[n] == '\0')
			return true;
		if (!is_path)
			return false;
	}
}

/* Return: whether an error only means that the group has ended. */
static bool has_ended(int error)
{
	return error == ENOENT || error == ENODEV;
}

/* Add the processes of the group @fd itself. A group of threads refuses to name any: its processes
 * are those of a group above it. */
static int add_pids(int fd, struct map *pids)
{
	_cleanup_(textfile_closep) FILE *f = NULL;
	const int procs = openat(fd, PROCS, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	uint32_t pid;
	int r;

	r = textfile_from(procs < 0 ? -errno : procs, "r", &f);
	if (r < 0)
		return has_ended(-r) ? 0 : r;
	errno = 0;
	while (r == 0 && fscanf(f, "%" SCNu32, &pid) == 1)
		r = pid > 0 ? map_put(pids, pid, 1) : 0;
	if (r == 0 && ferror(f) && !has_ended(errno) && errno != EOPNOTSUPP)
		r = errno ? -errno : -EIO;
	return r;
}

/* Walk over the group @fd, which lies @depth deep, and those below it. @is_asked: its processes are
 * asked for. */
static int walk_group(struct walk *w, int fd, bool is_asked, unsigned depth)
{
	_cleanup_(dirs_closep) DIR *dir = dirs_list(fd);
	struct dirent *entry;
	int r;

	if (!dir)
		return has_ended(errno) ? 0 : -errno;
	r = is_asked ? add_pids(fd, w->pids) : 0;
	w->found = w->found || is_asked;
	while (r == 0 && (r = dirs_next(dir, &entry)) > 0) {
		_cleanup_(fd_closep) int below = dirs_open(fd, entry->d_name);

		r = 0;
		if (below < 0) /* it is no group, or has ended */
			continue;
		if (++w->n_groups > CGROUP_COUNT_MAX || depth == CGROUP_DEPTH_MAX)
			return -EFBIG;
		r = walk_group(w, below, is_asked || strcmp(entry->d_name, w->name) == 0,
			       depth + 1);
	}
	return r;
}

/* Open the group at @path. */
static int open_group(int root_fd, const char *path)
{
	char name[NAME_MAX + 1];
	int fd = fcntl(root_fd, F_DUPFD_CLOEXEC, 0);

	while (fd >= 0 && *path == '/') {
		const size_t n = strcspn(path + 1, "/");
		int below;

		(void)snprintf(name, sizeof(name), "%.*s", (int)n, path + 1);
		below = dirs_open(fd, name);
		(void)fd_close(fd);
		fd = below == -ENOTDIR ? -ENOENT : below;
		path += 1 + n;
	}
	return fd;
}

int cgroup_pids(int root_fd, const char *name, struct map *ret_pids)
{
	_cleanup_(fd_closep) int fd = -1;
	struct walk walk = { .pids = ret_pids, .name = name };
	int r;

	if (!cgroup_name_is_good(name))
		return -EINVAL;
	if (name[0] == '/') {
		fd = open_group(root_fd, name);
		return fd < 0 ? fd : walk_group(&walk, fd, true, 0);
	}
	r = walk_group(&walk, root_fd, false, 0);
	return r == 0 && !walk.found ? -ENOENT : r;
}
