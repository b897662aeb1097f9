/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/proc/process.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "util/textfile.h"

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
	char text[2048];
	const char *line;

	if (textfile_read(pid_fd, "status", text, sizeof(text)) < 0)
		return false;
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
	const char *end;

	if (textfile_read(at, path, ret_text, PROCESS_STAT_SIZE) < 0)
		return NULL;
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
