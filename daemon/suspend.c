/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/suspend.h"

#include <time.h>

/* Less is between reading the one clock and the other. */
#define SUSPENDED_NS INT64_C(50000000)

static int64_t suspended_ns(void)
{
	struct timespec boot, monotonic;

	(void)clock_gettime(CLOCK_MONOTONIC, &monotonic);
	(void)clock_gettime(CLOCK_BOOTTIME, &boot);
	return (int64_t)(boot.tv_sec - monotonic.tv_sec) * 1000000000 +
	       (boot.tv_nsec - monotonic.tv_nsec);
}

void suspend_init(struct suspend *suspend)
{
	suspend->ns = suspended_ns();
}

bool suspend_happened(struct suspend *suspend)
{
	const int64_t before = suspend->ns;

	suspend->ns = suspended_ns();
	return suspend->ns > before + SUSPENDED_NS;
}
