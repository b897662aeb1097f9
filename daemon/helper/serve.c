/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/helper/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"

/* Return: whether there is the user @name, who is then served. */
static bool find_user(const char *name, uid_t *ret_user)
{
	const struct passwd *user = name ? getpwnam(name) : NULL;

	*ret_user = user ? user->pw_uid : geteuid();
	return user || !name;
}

/* Return: a descriptor of the directory of @path, locked until it is closed; or negative errno. */
static int lock_directory(const char *path)
{
	_cleanup_(fd_closep) int fd = -1;
	char directory[PATH_MAX];
	const char *slash = strrchr(path, '/');

	(void)snprintf(directory, sizeof(directory), "%.*s", slash ? (int)(slash - path) : 1,
		       slash ? path : ".");
	fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
		return -errno;
	return TAKE_FD(fd);
}

/* The directory is locked, so a socket that is there is that of a process that was killed. */
static int listen_at(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	_cleanup_(fd_closep) int fd = -1;

	if ((size_t)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path) >=
	    sizeof(address.sun_path))
		return -ENAMETOOLONG;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0 || (unlink(path) < 0 && errno != ENOENT) ||
	    bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, 16) < 0)
		return -errno;
	return TAKE_FD(fd);
}

/* The socket of a process that was killed is replaced. Return: 0; -EWOULDBLOCK if another process
 * serves there; or another negative errno. */
static int serve_listen(const char *path, int *ret_fd, int *ret_lock_fd)
{
	_cleanup_(fd_closep) int lock_fd = lock_directory(path);
	const int fd = lock_fd < 0 ? lock_fd : listen_at(path);

	if (fd < 0)
		return fd;
	*ret_fd = fd;
	*ret_lock_fd = TAKE_FD(lock_fd);
	return 0;
}

static void serve_say_ready(void)
{
	static const char ready[] = "READY=1";
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const char *path = getenv("NOTIFY_SOCKET");
	_cleanup_(fd_closep) int fd = -1;
	size_t size;

	if (!path || (path[0] != '/' && path[0] != '@') ||
	    (size = strlen(path)) >= sizeof(address.sun_path))
		return;
	memcpy(address.sun_path, path, size);
	if (path[0] == '@')
		address.sun_path[0] = 0;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd >= 0)
		(void)sendto(fd, ready, strlen(ready), MSG_NOSIGNAL,
			     (const struct sockaddr *)&address,
			     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size));
}

int serve_main(int argc, char *const *argv, const struct serve_program *program)
{
	_cleanup_(fd_closep) int lock_fd = -1;
	uid_t user;
	int fd, r;

	if (argc < 2 || argc > 3 || argv[1][0] == '-') {
		fputs(program->usage, stderr);
		return 2;
	}
	if (!find_user(argv[2], &user))
		return log_as(EXIT_FAILURE, "there is no user \"%s\"", argv[2]);
	/* What it has open is not for others, so no other process may look into it. */
	(void)prctl(PR_SET_DUMPABLE, 0);
	(void)umask(argv[2] ? 007 : 077);
	r = serve_listen(argv[1], &fd, &lock_fd);
	if (r == -EWOULDBLOCK)
		return log_as(EXIT_FAILURE, "%s: another %s serves there", argv[1], program->name);
	if (r < 0)
		return log_errno_as(EXIT_FAILURE, r, "%s: cannot listen there: %m", argv[1]);
	serve_say_ready();
	r = program->run(fd, user);
	(void)unlink(argv[1]);
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
