/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A process of another user, for units that root runs. */

#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

/* Return: its number. */
static inline uint32_t otheruser_start(uid_t uid)
{
	int ready[2];
	char byte;
	pid_t pid;

	if (pipe2(ready, O_CLOEXEC) < 0)
		abort();
	pid = fork();
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (setresuid(uid, uid, uid) < 0 || write(ready[1], "", 1) != 1)
			_exit(1);
		for (;;)
			(void)pause();
	}
	if (read(ready[0], &byte, 1) != 1)
		abort();
	(void)close(ready[0]);
	(void)close(ready[1]);
	return (uint32_t)pid;
}

static inline void otheruser_stop(uint32_t pid)
{
	(void)kill((pid_t)pid, SIGKILL);
	if (waitpid((pid_t)pid, NULL, 0) != (pid_t)pid)
		abort();
}
