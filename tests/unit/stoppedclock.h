/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A clock that a test can stop: while it stands, nothing takes time, however much is done. */

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static struct timespec stoppedclock_at; /* zeros: it goes */

/* The linker prefers this one. */
int clock_gettime(clockid_t id, struct timespec *ret_time)
{
	if (stoppedclock_at.tv_sec == 0 || id != CLOCK_MONOTONIC)
		return (int)syscall(SYS_clock_gettime, id, ret_time);
	*ret_time = stoppedclock_at;
	return 0;
}

static inline void stoppedclock_stop(void)
{
	(void)syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &stoppedclock_at);
}

static inline void stoppedclock_go(void)
{
	stoppedclock_at = (struct timespec){};
}
