/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Varint
 *
 * Unsigned numbers in as few bytes as they need: seven bits a byte, the lowest first, and the
 * highest bit of each byte but the last is set. DWARF calls it LEB128, and protocol buffers have it
 * too.
 */

#include <stddef.h>
#include <stdint.h>

#define VARINT_MAX 10 /* bytes of a number of 64 bits */

/* Write @number, which takes at most VARINT_MAX bytes. Return: the byte behind it. */
static inline uint8_t *varint_put(uint8_t *to, uint64_t number)
{
	for (; number >= 0x80; number >>= 7)
		*to++ = (uint8_t)(number | 0x80);
	*to++ = (uint8_t)number;
	return to;
}

/* Read a number that varint_put() wrote. Return: the byte behind it. */
static inline const uint8_t *varint_get(const uint8_t *from, uint64_t *ret_number)
{
	uint64_t number = 0;
	unsigned int shift = 0;

	for (; *from >= 0x80; shift += 7)
		number |= (uint64_t)(*from++ & 0x7f) << shift;
	*ret_number = number | (uint64_t)*from++ << shift;
	return from;
}
