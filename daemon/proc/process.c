/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/proc/process.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

int process_open(uint32_t pid)
{
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/%" PRIu32, pid);
	return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* The real, effective, saved and file system user of a process. */
enum { REAL, EFFECTIVE, SAVED, FILES, _USERS };

static bool read_users(int pid_fd, uint32_t ret_users[static _USERS])
{
	_cleanup_(fd_closep) int fd =
	    pid_fd < 0 ? -1 : openat(pid_fd, "status", O_RDONLY | O_CLOEXEC);
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
			      &ret_users[FILES]) == _USERS;
}

static int find_user(int pid_fd, uid_t *ret_uid)
{
	uint32_t users[_USERS];

	if (!read_users(pid_fd, users))
		return -ESRCH;
	for (size_t i = EFFECTIVE; i < _USERS; i++)
		if (users[i] != users[REAL])
			return -EPERM;
	*ret_uid = users[REAL];
	return 0;
}

int process_user_of(uint32_t pid, uid_t *ret_uid)
{
	_cleanup_(fd_closep) int pid_fd = process_open(pid);

	return find_user(pid_fd, ret_uid);
}

bool process_user_is(int pid_fd, uid_t uid)
{
	uid_t user;

	return find_user(pid_fd, &user) == 0 && user == uid;
}

int process_real_user_of(uint32_t pid, uid_t *ret_uid)
{
	_cleanup_(fd_closep) int pid_fd = process_open(pid);
	uint32_t users[_USERS];

	if (!read_users(pid_fd, users))
		return -ESRCH;
	*ret_uid = users[REAL];
	return 0;
}

const char *process_stat(int at, const char *path, char ret_text[static PROCESS_STAT_SIZE])
{
	_cleanup_(fd_closep) int fd = openat(at, path, O_RDONLY | O_CLOEXEC);
	const ssize_t n = fd < 0 ? -1 : read(fd, ret_text, PROCESS_STAT_SIZE - 1);
	const char *end;

	if (n <= 0)
		return NULL;
	ret_text[n] = 0;
	/* Its name, in parentheses, may hold anything. */
	end = strrchr(ret_text, ')');
	return end && end[1] == ' ' ? end + 2 : NULL;
}

uint64_t process_birth(int pid_fd)
{
	char text[PROCESS_STAT_SIZE];
	const char *fields = process_stat(pid_fd, "stat", text);
	uint64_t t = 0;

	/* From the state on, the 3rd field; the start is the 22nd. */
	if (!fields ||
	    sscanf(fields,
		   "%*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s"
		   " %" SCNu64,
		   &t) != 1)
		return 0;
	return t;
}
