/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Clock
 *
 * The time of a clock as one number.
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
