/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Number
 *
 * A decimal number that is a whole text: digits alone, without sign or space; a number of bytes may
 * end in a unit.
 */

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

/* Parse @text. Return: 0; or -EINVAL if it is no such number, or more than @max. */
_must_check_ static inline int number_parse(const char *text, uint64_t max, uint64_t *ret_number)
{
	unsigned long long n;
	char *end;

	if (text[0] < '0' || text[0] > '9')
		return -EINVAL;
	errno = 0;
	n = strtoull(text, &end, 10);
	if (errno || *end || n > max)
		return -EINVAL;
	*ret_number = n;
	return 0;
}

/*
 * Parse the number in @base, up to 16, at the start of @text, behind which is the character
 * @behind.
 *
 * Return: what follows that; or NULL if there is no such number, or it is UINT64_MAX or about that.
 */
_must_check_ static inline const char *number_take(const char *text, unsigned base, char behind,
						   uint64_t *ret_number)
{
	static const char digits[] = "0123456789abcdef";
	const char *c = text;
	uint64_t number = 0;

	for (; *c && *c != behind; c++) {
		const char *digit = memchr(digits, *c, base);

		if (!digit || number > (UINT64_MAX - 15) / base)
			return NULL;
		number = number * base + (uint64_t)(digit - digits);
	}
	if (c == text || *c != behind)
		return NULL;
	*ret_number = number;
	return c + 1;
}

/* Parse a number of bytes, with K, M, G or T for powers of 1024. Return: likewise. */
_must_check_ static inline int number_parse_bytes(const char *text, uint64_t max,
						  uint64_t *ret_bytes)
{
	static const char units[] = "KMGT";
	unsigned long long n;
	unsigned shift = 0;
	const char *unit;
	char *end;

	if (text[0] < '0' || text[0] > '9')
		return -EINVAL;
	errno = 0;
	n = strtoull(text, &end, 10);
	unit = *end ? strchr(units, *end) : NULL;
	if (unit) {
		shift = 10 * (unsigned)(unit - units + 1);
		end++;
	}
	if (errno || *end || n > max >> shift)
		return -EINVAL;
	*ret_bytes = (uint64_t)n << shift;
	return 0;
}
