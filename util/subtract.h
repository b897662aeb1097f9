/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Subtract
 *
 * What is left of an amount, which cannot be less than 0.
 */

#include <stdint.h>

/* Return: @from less @by; 0 if that is more. */
static inline uint64_t subtract(uint64_t from, uint64_t by)
{
	return from > by ? from - by : 0;
}
