/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "util/outdir.h"

#include <errno.h>
#include <fcntl.h>
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
	const char *slash = memchr(name, '/', size);
	const size_t n_before = slash ? (size_t)(slash - name) : 0;

	if (size > OUTDIR_NAME_MAX)
		return false;
	return slash ? is_part(name, n_before) && is_part(slash + 1, size - n_before - 1)
		     : is_part(name, size);
}

int outdir_open_here(int dir_fd, const char *name, bool is_new)
{
	/* A FIFO of that name, which somebody else made, must not hold us up. */
	const int flags = is_new ? O_CREAT | O_EXCL : O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
	_cleanup_(fd_closep) int fd = openat(dir_fd, name, O_WRONLY | O_CLOEXEC | flags, 0666);
	struct stat st;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	r = fd;
	fd = -1;
	return r;
}

static int ask_creator(int socket, const char *name, bool is_new)
{
	struct outdir_question question = { .is_new = is_new };
	struct outdir_answer answer;
	int r, fd;

	if (strlen(name) > OUTDIR_NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(question.name, name, strlen(name));
	/* A file that is created, and for which there is then no descriptor, would stay behind. */
	fd = fcntl(socket, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	(void)fd_close(fd);

	r = fdpass_ask(socket, &question, sizeof(question));
	if (r == 0)
		r = fdpass_receive(socket, &answer, sizeof(answer), &fd);
	if (r < 0)
		return r;
	if (answer.r == 0 && fd >= 0)
		return fd;
	(void)fd_close(fd);
	return answer.r < 0 ? answer.r : -EMFILE;
}

int outdir_open(int fd, const char *name, bool is_new)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	return S_ISSOCK(st.st_mode) ? ask_creator(fd, name, is_new)
				    : outdir_open_here(fd, name, is_new);
}
