/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/proc/claimant.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct claimant claimant_find(const struct claims *claims, uint32_t pid)
{
	struct claimant c = { .is_true = !claims || !claims->is_writer };
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/%" PRIu32, pid);
	c.pid_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	/* The descriptor is opened first: it never leads to another process that gets the number
	 * later. */
	if (c.pid_fd >= 0 && !c.is_true && !claims->is_writer(claims->userdata, pid))
		c.pid_fd = fd_close(c.pid_fd);
	return c;
}

void claimant_deinit(struct claimant *claimant)
{
	claimant->pid_fd = fd_close(claimant->pid_fd);
}

/* The real, effective, saved and file system user of a process. */
enum { REAL, EFFECTIVE, SAVED, FILES, _USERS };

/* The owner of /proc/PID is not the user of the process: root owns it if the process has disabled
 * core dumps. */
static bool read_users(int pid_fd, uint32_t ret_users[static _USERS])
{
	_cleanup_(fd_closep) int fd = openat(pid_fd, "status", O_RDONLY | O_CLOEXEC);
	char text[2048];
	const char *line;
	ssize_t n;

	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return false;
	text[n] = '\0';
	line = strstr(text, "\nUid:");
	return line && sscanf(line + strlen("\nUid:"), "%" SCNu32 "%" SCNu32 "%" SCNu32 "%" SCNu32,
			      &ret_users[REAL], &ret_users[EFFECTIVE], &ret_users[SAVED],
			      &ret_users[FILES]) == 4;
}

int claimant_user(const struct claimant *claimant, uid_t *ret_uid)
{
	uint32_t users[_USERS];

	if (!read_users(claimant->pid_fd, users))
		return -ESRCH;
	for (size_t i = EFFECTIVE; i < _USERS; i++) {
		if (users[i] != users[REAL])
			return -EPERM;
	}
	*ret_uid = users[REAL];
	return 0;
}

bool claimant_user_is(const struct claimant *claimant, uid_t uid)
{
	uid_t user;

	return claimant_user(claimant, &user) == 0 && user == uid;
}

bool claimant_real_user(const struct claimant *claimant, uid_t *ret_uid)
{
	uint32_t users[_USERS];

	if (!read_users(claimant->pid_fd, users))
		return false;
	*ret_uid = users[REAL];
	return true;
}

bool claimant_may_read(const struct claimant *claimant, const struct stat *st)
{
	if (st->st_mode & S_IROTH)
		return true;
	if (claimant->has_user && claimant->user == st->st_uid && st->st_mode & S_IRUSR)
		return true;
	return claimant->is_true && claimant->pid_fd >= 0 && st->st_mode & S_IRUSR &&
	       claimant_user_is(claimant, st->st_uid);
}
