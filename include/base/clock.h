/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Clock
 *
 * The time of a clock as one number, and back; and how far it is off.
 */

#include <limits.h>
#include <stdint.h>
#include <time.h>

/* Return: the time of @clock in ns. */
static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	(void)clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Return: @ns as the kernel and libc take times. */
static inline struct timespec clock_timespec(uint64_t ns)
{
	return (struct timespec){ .tv_sec = (time_t)(ns / 1000000000),
				  .tv_nsec = (long)(ns % 1000000000) };
}

/* Return: for how many ms poll(2) may wait until @until_ns of CLOCK_MONOTONIC; 0 if that has come;
 *         -1 if it is UINT64_MAX: never. */
static inline int clock_ms_until(uint64_t until_ns)
{
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);
	const uint64_t ms = now < until_ns ? (until_ns - now) / 1000000 + 1 : 0;

	if (until_ns == UINT64_MAX)
		return -1;
	return ms < INT_MAX ? (int)ms : INT_MAX;
}
