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

/* The owner of /proc/PID is not the user of the process: root owns it if the process has disabled
 * core dumps. */
int claimant_user(const struct claimant *claimant, uid_t *ret_uid)
{
	_cleanup_(fd_closep) int fd = openat(claimant->pid_fd, "status", O_RDONLY | O_CLOEXEC);
	uint32_t real, effective, saved, fs;
	char text[2048];
	const char *line;
	ssize_t n;

	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return -ESRCH;
	text[n] = '\0';
	line = strstr(text, "\nUid:");
	if (!line || sscanf(line + strlen("\nUid:"), "%" SCNu32 "%" SCNu32 "%" SCNu32 "%" SCNu32,
			    &real, &effective, &saved, &fs) != 4)
		return -ESRCH;
	if (effective != real || saved != real || fs != real)
		return -EPERM;
	*ret_uid = real;
	return 0;
}

bool claimant_user_is(const struct claimant *claimant, uid_t uid)
{
	uid_t user;

	return claimant_user(claimant, &user) == 0 && user == uid;
}

bool claimant_may_read(const struct claimant *claimant, const struct stat *st)
{
	if (st->st_mode & S_IROTH)
		return true;
	return claimant->is_true && claimant->pid_fd >= 0 && st->st_mode & S_IRUSR &&
	       claimant_user_is(claimant, st->st_uid);
}
