/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/proc/readable.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>

/* Return: whether there is no access control list, which might deny what the bits allow. */
static bool has_no_list(int path_fd)
{
	char path[40];

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", path_fd);
	return getxattr(path, "system.posix_acl_access", NULL, 0) < 0 &&
	       (errno == ENODATA || errno == EOPNOTSUPP);
}

/* Return: whether the bits allow what @bit says of others, S_IROTH or S_IXOTH. A user who is not
 * the owner may be in the group: both must have it. */
static bool allows(int path_fd, const struct stat *st, uid_t uid, mode_t bit)
{
	const mode_t both = bit | bit << 3;

	if (uid == 0)
		return true;
	if (st->st_uid == uid)
		return st->st_mode & bit << 6;
	return (st->st_mode & both) == both && has_no_list(path_fd);
}

/* A walk along a path. */
struct walk {
	uid_t uid;
	int fd; /* stands for what it has come to */
	struct stat st;
	unsigned n_links;
	char rest[PATH_MAX]; /* of the path */
};

static int step_to(struct walk *w, int fd)
{
	if (fd < 0)
		return -errno;
	(void)fd_close(w->fd);
	w->fd = fd;
	return fstat(fd, &w->st) < 0 ? -errno : 0;
}

static int go_to_root(struct walk *w)
{
	return step_to(w, open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
}

/* Take the next name off the rest of the path. Return: whether there was one. */
static bool take_name(struct walk *w, char ret_name[static NAME_MAX + 1])
{
	const char *start = w->rest + strspn(w->rest, "/");
	const size_t n = strcspn(start, "/");

	if (n == 0 || n > NAME_MAX)
		return false;
	memcpy(ret_name, start, n);
	ret_name[n] = 0;
	memmove(w->rest, start + n, strlen(start + n) + 1);
	return true;
}

/* Put what the symbolic link @fd says in the place of its name. */
static int follow(struct walk *w, int fd)
{
	char target[PATH_MAX], rest[PATH_MAX];
	const ssize_t n = readlinkat(fd, "", target, sizeof(target) - 1);

	if (n < 0)
		return -errno;
	if (++w->n_links > READABLE_LINKS_MAX)
		return -ELOOP;
	target[n] = 0;
	memcpy(rest, w->rest, sizeof(rest));
	if ((size_t)snprintf(w->rest, sizeof(w->rest), "%s%s", target, rest) >= sizeof(w->rest))
		return -ENAMETOOLONG;
	return target[0] == '/' ? go_to_root(w) : 0;
}

static int enter(struct walk *w, const char *name)
{
	_cleanup_(fd_closep) int fd = -1;
	struct stat st;
	int taken;

	if (!S_ISDIR(w->st.st_mode))
		return -ENOTDIR;
	if (!allows(w->fd, &w->st, w->uid, S_IXOTH))
		return -EACCES;
	fd = openat(w->fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (S_ISLNK(st.st_mode))
		return follow(w, fd);
	taken = fd;
	fd = -1;
	return step_to(w, taken);
}

static int walk_path(struct walk *w, const char *path)
{
	char name[NAME_MAX + 1];
	int r;

	if (path[0] != '/' || strlen(path) >= sizeof(w->rest))
		return -EINVAL;
	strcpy(w->rest, path);
	r = go_to_root(w);
	while (r == 0 && take_name(w, name))
		r = enter(w, name);
	if (r < 0)
		return r;
	if (w->rest[strspn(w->rest, "/")])
		return -ENAMETOOLONG;
	if (!S_ISREG(w->st.st_mode))
		return -ENOEXEC;
	return allows(w->fd, &w->st, w->uid, S_IROTH) ? 0 : -EACCES;
}

int readable_check(uid_t uid, const char *path, struct stat *ret_st)
{
	struct walk w = { .uid = uid, .fd = -1 };
	const int r = walk_path(&w, path);

	(void)fd_close(w.fd);
	if (r == 0)
		*ret_st = w.st;
	return r;
}
