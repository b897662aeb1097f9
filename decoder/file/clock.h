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

struct clock_conv {
	bool valid; /* false: the file has no conversion */
	uint16_t shift;
	uint32_t mult;
	uint64_t zero;
};

uint64_t clock_ns_from_tsc(const struct clock_conv *conv, uint64_t tsc);

/* The smallest TSC whose time is not before @ns. */
uint64_t clock_tsc_from_ns(const struct clock_conv *conv, uint64_t ns);
