/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/helper/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

#include "base/log.h"
#include "util/beside.h"
#include "util/dirs.h"

#define START_TRIES   200u
#define START_POLL_NS 5000000

int helper_init(struct helper *helper, const char *runtime_dir, const char *name,
		const char *without)
{
	struct helper h = {
		.name = name, .without = without, .address.sun_family = AF_UNIX, .fd = -1
	};

	if ((size_t)snprintf(h.address.sun_path, sizeof(h.address.sun_path), "%s/%s/socket",
			     runtime_dir, name) >= sizeof(h.address.sun_path))
		return -ENAMETOOLONG;
	*helper = h;
	return 0;
}

int helper_connect(struct helper *helper, unsigned patience_s)
{
	const struct timeval patience = { .tv_sec = patience_s };
	_cleanup_(fd_closep) int fd = socket(
	    AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | (patience_s > 0 ? 0 : SOCK_NONBLOCK), 0);

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) < 0 ||
	    connect(fd, (const struct sockaddr *)&helper->address, sizeof(helper->address)) < 0)
		return -errno;
	helper->fd = TAKE_FD(fd);
	return 0;
}

bool helper_is_to_start(int error)
{
	return (error == -ENOENT || error == -ECONNREFUSED) && !getenv("NOTIFY_SOCKET");
}

void helper_leave(struct helper *helper, int error)
{
	helper->fd = fd_close(helper->fd);
	if (helper->said || !helper->without)
		return;
	(void)log_warning_errno(error, "%s: the %s is not there: %s: %m", helper->address.sun_path,
				helper->name, helper->without);
	helper->said = true;
}

/* Start the program beside this one, or where it is installed. */
static int spawn_program(struct helper *helper)
{
	_cleanup_(freep) char *path = NULL;
	char installed[64], *name = installed + strlen("../lib/ptd/");
	const char *const places[] = { name, installed };
	char *const argv[] = { name, helper->address.sun_path, NULL };
	char *const environment[] = { NULL };
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	sigset_t none;
	int r;

	if ((size_t)snprintf(installed, sizeof(installed), "../lib/ptd/ptd-%s", helper->name) >=
	    sizeof(installed))
		return -ENAMETOOLONG;
	r = beside_find(places, ARRAY_LEN(places), X_OK, &path);
	if (r < 0)
		return r;
	sigemptyset(&none);
	r = posix_spawn_file_actions_init(&files);
	if (r)
		return -r;
	r = posix_spawnattr_init(&attributes);
	if (r) {
		(void)posix_spawn_file_actions_destroy(&files);
		return -r;
	}
	/* Neither a Ctrl-C that is meant for ptd nor a pipe that ptd writes to concerns it. */
	if ((r = posix_spawnattr_setflags(&attributes,
					  POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK)) == 0 &&
	    (r = posix_spawnattr_setsigmask(&attributes, &none)) == 0 &&
	    (r = posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDWR, 0)) == 0 &&
	    (r = posix_spawn_file_actions_adddup2(&files, 0, 1)) == 0 &&
	    (r = posix_spawn_file_actions_adddup2(&files, 0, 2)) == 0)
		r = posix_spawn(&helper->pid, path, &files, &attributes, argv, environment);
	(void)posix_spawnattr_destroy(&attributes);
	(void)posix_spawn_file_actions_destroy(&files);
	return -r;
}

bool helper_has_ended(struct helper *helper)
{
	if (helper->pid > 0 && waitpid(helper->pid, NULL, WNOHANG) != 0)
		helper->pid = 0;
	return helper->pid == 0;
}

/* Make the directory of the socket, for ptd's user only, and that in which it lies. */
static int make_directories(struct helper *helper)
{
	char path[sizeof(helper->address.sun_path)], *slash;

	memcpy(path, helper->address.sun_path, sizeof(path));
	slash = strrchr(path, '/');
	*slash = 0;
	slash = strrchr(path, '/');
	*slash = 0;
	if (path[0] && dirs_make_public(path) < 0)
		return -errno;
	*slash = '/';
	return mkdir(path, 0700) < 0 && errno != EEXIST ? -errno : 0;
}

int helper_start(struct helper *helper)
{
	int r;

	if (!helper_has_ended(helper))
		return 0;
	r = make_directories(helper);
	return r < 0 ? r : spawn_program(helper);
}

int helper_start_and_connect(struct helper *helper, unsigned patience_s)
{
	int r = helper_connect(helper, patience_s);

	if (!helper_is_to_start(r))
		return r;
	r = helper_start(helper);
	for (unsigned i = 0; r == 0 && i < START_TRIES; i++) {
		r = helper_connect(helper, patience_s);
		if (r == 0 || helper_has_ended(helper))
			return r;
		(void)nanosleep(&(struct timespec){ .tv_nsec = START_POLL_NS }, NULL);
		r = 0;
	}
	return r < 0 ? r : -ECONNREFUSED;
}
