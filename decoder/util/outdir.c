/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/util/outdir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "util/fdpass.h"

static bool is_part(const char *part, size_t size)
{
	return size > 0 && part[0] != '.' && !memchr(part, '/', size);
}

bool outdir_is_name(const char name[static OUTDIR_NAME_MAX + 1])
{
	const size_t size = strnlen(name, OUTDIR_NAME_MAX + 1);
	const char *part = name;
	size_t n_parts = 1;

	if (size > OUTDIR_NAME_MAX)
		return false;
	for (const char *slash; (slash = strchr(part, '/')); part = slash + 1, n_parts++)
		if (!is_part(part, (size_t)(slash - part)))
			return false;
	return is_part(part, size - (size_t)(part - name)) && n_parts <= OUTDIR_DEPTH_MAX;
}

/* Make the directories that @name has. Return: 0, or negative errno. */
static int make_parents(int dir_fd, const char *name)
{
	char parent[OUTDIR_NAME_MAX + 1];

	for (const char *slash = name; (slash = strchr(slash, '/')); slash++) {
		const size_t size = (size_t)(slash - name);

		if (size >= sizeof(parent))
			return -ENAMETOOLONG;
		memcpy(parent, name, size);
		parent[size] = '\0';
		if (mkdirat(dir_fd, parent, 0777) < 0 && errno != EEXIST)
			return -errno;
	}
	return 0;
}

int outdir_open_here(int dir_fd, const char *name, bool is_new)
{
	/* A FIFO of that name, which somebody else made, must not hold us up. */
	const int flags = is_new ? O_CREAT | O_EXCL : O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
	_cleanup_(fd_closep) int fd = openat(dir_fd, name, O_RDWR | O_CLOEXEC | flags, 0666);
	struct stat st;
	int r;

	if (fd < 0 && errno == ENOENT && is_new) {
		r = make_parents(dir_fd, name);
		if (r < 0)
			return r;
		fd = openat(dir_fd, name, O_RDWR | O_CLOEXEC | flags, 0666);
	}
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	r = fd;
	fd = -1;
	return r;
}

int outdir_rename_here(int dir_fd, const char *name, const char *new_name)
{
	/* Only this process makes files here, so that no other file can come between the two. */
	if (faccessat(dir_fd, new_name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return -EEXIST;
	return renameat(dir_fd, name, dir_fd, new_name) < 0 ? -errno : 0;
}

/*
 * Ask the process at the other end of @socket. @new_name may be NULL. Return: 0 and a descriptor or
 * -1 in @ret_fd; or negative errno.
 */
static int ask_creator(int socket, enum outdir_what what, const char *name, const char *new_name,
		       int *ret_fd)
{
	struct outdir_question question = { .what = (uint8_t)what };
	struct outdir_answer answer;
	int r, fd;

	if (strlen(name) > OUTDIR_NAME_MAX || (new_name && strlen(new_name) > OUTDIR_NAME_MAX))
		return -ENAMETOOLONG;
	memcpy(question.name, name, strlen(name));
	if (new_name)
		memcpy(question.new_name, new_name, strlen(new_name));

	r = fdpass_ask(socket, &question, sizeof(question));
	if (r == 0)
		r = fdpass_receive(socket, &answer, sizeof(answer), &fd);
	if (r < 0)
		return r;
	if (answer.r == 0) {
		*ret_fd = fd;
		return 0;
	}
	(void)fd_close(fd);
	return answer.r < 0 ? answer.r : -EMFILE;
}

static int open_by_creator(int socket, const char *name, bool is_new)
{
	int r, fd;

	/* A file that is created, and for which there is then no descriptor, would stay behind. */
	fd = fcntl(socket, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	(void)fd_close(fd);
	r = ask_creator(socket, is_new ? OUTDIR_CREATE : OUTDIR_OPEN, name, NULL, &fd);
	if (r < 0)
		return r;
	return fd < 0 ? -EMFILE : fd;
}

int outdir_open(int fd, const char *name, bool is_new)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	return S_ISSOCK(st.st_mode) ? open_by_creator(fd, name, is_new)
				    : outdir_open_here(fd, name, is_new);
}

int outdir_rename(int fd, const char *name, const char *new_name)
{
	struct stat st;
	int file, r;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISSOCK(st.st_mode))
		return outdir_rename_here(fd, name, new_name);
	r = ask_creator(fd, OUTDIR_RENAME, name, new_name, &file);
	if (r == 0)
		(void)fd_close(file);
	return r;
}
