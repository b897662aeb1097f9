/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* ptd-keeper: holds the memory of ptd's rings while ptd restarts. */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/log.h"
#include "daemon/keeper/keeper.h"

#define FIRST_WAIT_SECONDS 30u

/* Return: a descriptor of the directory of @path, locked until it is closed; or negative errno. */
static int lock_directory(const char *path)
{
	_cleanup_(fd_closep) int fd = -1;
	char directory[PATH_MAX];
	const char *slash = strrchr(path, '/');
	int taken;

	(void)snprintf(directory, sizeof(directory), "%.*s", slash ? (int)(slash - path) : 1,
		       slash ? path : ".");
	fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
		return -errno;
	taken = fd;
	fd = -1;
	return taken;
}

/* The directory is locked: a socket that is there is that of a keeper that was killed. */
static int listen_at(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	_cleanup_(fd_closep) int fd = -1;
	int taken;

	if ((size_t)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path) >=
	    sizeof(address.sun_path))
		return -ENAMETOOLONG;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0 || (unlink(path) < 0 && errno != ENOENT) ||
	    bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, 16) < 0)
		return -errno;
	taken = fd;
	fd = -1;
	return taken;
}

/* Say to the service manager, if there is one, that ptd can connect: sd_notify(3). */
static void say_ready(void)
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

int main(int argc, char **argv)
{
	_cleanup_(keeper_freep) struct keeper *keeper = NULL;
	_cleanup_(fd_closep) int lock_fd = -1;
	int fd, r;

	if (argc != 2 || argv[1][0] == '-') {
		fputs("Usage: ptd-keeper SOCKET\n\n"
		      "Holds the memory of the rings of ptd while ptd restarts. See ptd(8).\n",
		      stderr);
		return 2;
	}
	/* What it holds is what all users executed. */
	(void)prctl(PR_SET_DUMPABLE, 0);
	(void)umask(077);
	lock_fd = lock_directory(argv[1]);
	if (lock_fd == -EWOULDBLOCK) {
		log_error("%s: another keeper serves there", argv[1]);
		return EXIT_FAILURE;
	}
	fd = lock_fd < 0 ? lock_fd : listen_at(argv[1]);
	r = fd < 0 ? fd : keeper_new(fd, geteuid(), FIRST_WAIT_SECONDS, &keeper);
	if (r < 0) {
		(void)log_error_errno(r, "%s: cannot listen there: %m", argv[1]);
		return EXIT_FAILURE;
	}
	say_ready();
	r = keeper_run(keeper);
	(void)unlink(argv[1]);
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
