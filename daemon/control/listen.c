/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/control/listen.h"

#include <errno.h>
#include <grp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "ptd/control.h"
#include "util/dirs.h"

#define SOCKET_NAME "control"

static int bind_at(const struct sockaddr_un *address, int *ret_fd)
{
	_cleanup_(fd_closep) int fd = -1;
	const struct group *group;

	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (bind(fd, (const struct sockaddr *)address, sizeof(*address)) < 0)
		return -errno;
	/* For the group, if it is the system's recorder; a user's own is for that user. */
	group = geteuid() == 0 ? getgrnam(PTD_CONTROL_GROUP) : NULL;
	if ((group && chown(address->sun_path, (uid_t)-1, group->gr_gid) < 0) ||
	    chmod(address->sun_path, 0660) < 0 || listen(fd, SOMAXCONN) < 0)
		return -errno;
	*ret_fd = fd;
	fd = -1;
	return 0;
}

/* Return: whether the process that made the socket has ended. */
static bool is_dead(const struct sockaddr_un *address)
{
	_cleanup_(fd_closep) int fd = -1;

	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	return fd >= 0 && connect(fd, (const struct sockaddr *)address, sizeof(*address)) < 0 &&
	       errno == ECONNREFUSED;
}

int listen_control(const char *runtime_dir, int *ret_fd, char **ret_path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	char *path;
	int r;

	r = sd_listen_fds(1);
	if (r > 1 ||
	    (r == 1 && sd_is_socket_unix(SD_LISTEN_FDS_START, SOCK_STREAM, 1, NULL, 0) <= 0))
		return -EINVAL;
	if (r < 0)
		return r;
	if (r == 1) {
		*ret_fd = SD_LISTEN_FDS_START;
		*ret_path = NULL;
		return 0;
	}

	if ((size_t)snprintf(address.sun_path, sizeof(address.sun_path), "%s/" SOCKET_NAME,
			     runtime_dir) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	r = dirs_make_public(runtime_dir);
	if (r < 0)
		return r;
	path = strdup(address.sun_path);
	if (!path)
		return -ENOMEM;
	r = bind_at(&address, ret_fd);
	if (r == -EADDRINUSE && is_dead(&address) && unlink(path) == 0)
		r = bind_at(&address, ret_fd);
	if (r < 0) {
		free(path);
		return r;
	}
	*ret_path = path;
	return 0;
}
