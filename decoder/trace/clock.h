/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Clock
 *
 * TSC to the recorder's nanoseconds and back, as perf_event_mmap_page says: ns = zero + quotient *
 * mult + ((remainder * mult) >> shift). All of it wraps at 64 bits; "zero" is often negative.
 */

#include <stdbool.h>
#include <stdint.h>

#define CLOCK_SHIFT_MAX 32u

struct clock_conv {
	bool valid;     /* false: the file has no conversion, and the functions may not be used */
	uint16_t shift; /* at most CLOCK_SHIFT_MAX */
	uint32_t mult;  /* not 0 */
	uint64_t zero;
};

/* The time of @tsc. */
uint64_t clock_ns_from_tsc(const struct clock_conv *conv, uint64_t tsc);

/*
 * The smallest TSC whose time is not before @ns: 0 if @ns is before TSC 0, UINT64_MAX if no TSC is
 * that late.
 */
uint64_t clock_tsc_from_ns(const struct clock_conv *conv, uint64_t ns);
