/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Clock
 *
 * The time of a clock as one number, and back.
 */

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
