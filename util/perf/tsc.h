/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * TSC
 *
 * PT counts TSC ticks, records have the nanoseconds of the recorder's clock: ns = zero + quotient *
 * mult + ((remainder * mult) >> shift), where quotient and remainder are those of TSC / 2^shift.
 * All of it wraps at 64 bits; "zero" is often negative.
 *
 * Source: <linux/perf_event.h>, struct perf_event_mmap_page.
 */

#include <stdbool.h>
#include <stdint.h>

#define TSC_SHIFT_MAX 32u

struct tsc_conv {
	bool valid;     /* false: there is no conversion, and the functions may not be used */
	uint16_t shift; /* at most TSC_SHIFT_MAX */
	uint32_t mult;  /* not 0 */
	uint64_t zero;
};

/* Return: the time of @tsc in ns. */
static inline uint64_t tsc_to_ns(const struct tsc_conv *conv, uint64_t tsc)
{
	const uint64_t quotient = tsc >> conv->shift;
	const uint64_t remainder = tsc & ((UINT64_C(1) << conv->shift) - 1);

	/* The shift is at most 32, so that the product of the remainder fits. */
	return conv->zero + quotient * conv->mult + ((remainder * conv->mult) >> conv->shift);
}

/*
 * Return: the smallest TSC whose time is not before @ns; 0 if @ns is before TSC 0; UINT64_MAX if no
 * TSC is that late.
 */
uint64_t tsc_from_ns(const struct tsc_conv *conv, uint64_t ns);
