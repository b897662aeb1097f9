/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The registry, where a new sink is a file of its own and one line here; and what sinks write to.
 */

#include "ptd/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/base.h"
#include "decoder/sink/sinks.h"
#include "util/dirs.h"

const struct ptd_sink_ops *const ptd_sinks[] = {
	&sink_text, &sink_summary, &sink_drmemtrace, &sink_addresses, &sink_sideband, NULL,
};

const struct ptd_sink_ops *ptd_sink_find(const char *name)
{
	for (const struct ptd_sink_ops *const *s = ptd_sinks; *s; s++)
		if (strcmp((*s)->name, name) == 0)
			return *s;
	return NULL;
}

/* --- targets ---------------------------------------------------------------------------------- */

/* Only @name may be in the directory. Return: 0; -ENOTEMPTY; or another negative errno. */
static int check_has_only(int dir_fd, const char *name)
{
	_cleanup_(dirs_closep) DIR *dir = dirs_list(dir_fd);
	struct dirent *entry;
	int r;

	if (!dir)
		return -errno;
	while ((r = dirs_next(dir, &entry)) > 0)
		if (!name || strcmp(entry->d_name, name) != 0)
			return -ENOTEMPTY;
	return r;
}

/* Make the directory @path if it is not there; nothing but @only may be in it. Return: its
 * descriptor, or negative errno. */
static int make_directory(int at_fd, const char *path, const char *only)
{
	int fd, r;

	if (mkdirat(at_fd, path, 0777) < 0 && errno != EEXIST)
		return -errno;
	fd = openat(at_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOTDIR ? -EEXIST : -errno;
	r = check_has_only(fd, only);
	if (r == 0)
		return fd;
	(void)fd_close(fd);
	return r;
}

/* Readers take every file in the inner one: nothing but the sink's may ever be there. */
static int open_directory(const char *path, const char *inner)
{
	_cleanup_(fd_closep) int outer = -1;

	if (!path)
		return -EISDIR;
	outer = make_directory(AT_FDCWD, path, inner);
	return outer < 0 ? outer : make_directory(outer, inner, NULL);
}

static int open_file(const char *path)
{
	const int fd = path ? open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY, 0666)
			    : fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);

	return fd < 0 ? -errno : fd;
}

int ptd_sink_target_open(const struct ptd_sink_ops *ops, const char *path,
			 struct ptd_sink_target *ret_target)
{
	const int fd = ops->directory ? open_directory(path, ops->directory) : open_file(path);

	if (fd < 0)
		return fd;
	*ret_target = (struct ptd_sink_target){ .fd = fd, .is_emptied = path };
	return 0;
}

int ptd_sink_open(const struct ptd_sink_ops *ops, const char *path, const struct ptd_info *info,
		  struct ptd_sink **ret_sink)
{
	struct ptd_sink_target target;
	int r;

	r = ptd_sink_target_open(ops, path, &target);
	if (r < 0)
		return r;
	r = ops->open(ops, &target, info, ret_sink);
	if (r < 0)
		(void)fd_close(target.fd);
	return r;
}
