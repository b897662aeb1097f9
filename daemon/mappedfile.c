/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/mappedfile.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

/* Of a descriptor that only stands for a file, one to read it by. */
static int reopen(int path_fd, int *ret_fd)
{
	char path[40];
	struct stat st;
	int fd;

	if (fstat(path_fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -ENOEXEC;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", path_fd);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}

int mappedfile_open_path(int root_fd, const char *path, int *ret_fd)
{
	_cleanup_(fd_closep) int path_fd = -1;
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};

	path_fd = (int)syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
	return path_fd < 0 ? -errno : reopen(path_fd, ret_fd);
}

/* Is what is open at @fd the file that is meant? */
static int check(int fd, const struct mappedfile *file, struct buildid *ret_build_id)
{
	struct stat st;
	int r;

	if (fstat(fd, &st) < 0)
		return -errno;
	r = buildid_read(fd, ret_build_id);
	if (r < 0)
		return r;
	if (file->build_id.size > 0)
		return buildid_equal(&file->build_id, ret_build_id) ? 0 : -ESTALE;
	/* Not all file systems show the same device in both places, but all the same inode. */
	return file->ino == 0 || file->ino == st.st_ino ? 0 : -ESTALE;
}

static int try_map_files(int pid_fd, const struct mappedfile *file, int *ret_fd)
{
	_cleanup_(fd_closep) int path_fd = -1;
	char name[64];

	(void)snprintf(name, sizeof(name), "map_files/%" PRIx64 "-%" PRIx64, file->start,
		       file->end);
	path_fd = openat(pid_fd, name, O_PATH | O_CLOEXEC);
	return path_fd < 0 ? -errno : reopen(path_fd, ret_fd);
}

static int try_root(int at_fd, const char *root, const struct mappedfile *file, int *ret_fd)
{
	_cleanup_(fd_closep) int root_fd = -1;

	root_fd = openat(at_fd, root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return root_fd < 0 ? -errno : mappedfile_open_path(root_fd, file->path, ret_fd);
}

enum place {
	PLACE_MAP_FILES, /* nobody can put another file there */
	PLACE_ROOT,      /* its path, in the root and the mounts of the process */
	PLACE_OWN_ROOT,  /* its path in ours: the process may be gone */
	_PLACES,
};

static int try_place(enum place place, int pid_fd, const struct mappedfile *file, int *ret_fd,
		     struct buildid *ret_build_id)
{
	_cleanup_(fd_closep) int fd = -1;
	int r = -ESRCH;

	if (place == PLACE_OWN_ROOT)
		r = try_root(AT_FDCWD, "/", file, &fd);
	else if (pid_fd >= 0)
		r = place == PLACE_ROOT ? try_root(pid_fd, "root", file, &fd)
					: try_map_files(pid_fd, file, &fd);
	if (r == 0)
		r = check(fd, file, ret_build_id);
	if (r < 0)
		return r;
	*ret_fd = fd;
	fd = -1;
	return 0;
}

/* Which of two errors says more: that another file was found, or none, or that nothing was tried. */
static int weigh(int r)
{
	return r == -ESTALE ? 3 : r == -ENOEXEC ? 2 : r == -ESRCH ? 0 : 1;
}

int mappedfile_open(int pid_fd, const struct mappedfile *file, int *ret_fd,
		    struct buildid *ret_build_id)
{
	struct buildid id = {};
	int worst = -ESRCH;

	if (file->path[0] != '/')
		return -ENOEXEC;
	for (enum place place = PLACE_MAP_FILES; place < _PLACES; place++) {
		const int r = try_place(place, pid_fd, file, ret_fd, &id);

		if (r == 0) {
			if (ret_build_id)
				*ret_build_id = id;
			return 0;
		}
		worst = weigh(r) > weigh(worst) ? r : worst;
	}
	return worst;
}
