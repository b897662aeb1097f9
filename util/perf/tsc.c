/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "util/perf/tsc.h"

uint64_t tsc_from_ns(const struct tsc_conv *conv, uint64_t ns)
{
	const uint64_t since_zero = ns - conv->zero;
	unsigned __int128 tsc;

	/* More than 2^63 ns since TSC 0 means: before it. */
	if (since_zero > INT64_MAX)
		return 0;

	/*
	 * Split as it is in the other direction, the time of a TSC is the whole part of
	 * tsc * mult / 2^shift, so the smallest TSC is a division that rounds up.
	 */
	tsc = (((unsigned __int128)since_zero << conv->shift) + conv->mult - 1) / conv->mult;
	return tsc > UINT64_MAX ? UINT64_MAX : (uint64_t)tsc;
}
