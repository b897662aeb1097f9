/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * LEB128
 *
 * Numbers of any length, as DWARF has them: seven bits in each byte, the lowest first, and an
 * eighth that is set in all bytes but the last. Bits beyond the 64th are lost.
 *
 * Source: DWARF 5, 7.6.
 */

#include <errno.h>
#include <stdint.h>

#include "base/cursor.h"

/* Bytes of a number, and what is in them. */
struct leb128 {
	uint64_t number;
	unsigned int n_bits; /* that were read, up to some more than 64 */
	uint8_t last;        /* the last byte */
};

/* Return: 0, or -EBADMSG if the bytes end in the number. */
static inline int leb128_read(struct cursor *c, struct leb128 *ret)
{
	struct leb128 leb = {};

	do {
		if (cursor_get(c, 1, &leb.last) < 0)
			return -EBADMSG;
		if (leb.n_bits >= 64)
			continue;
		leb.number |= (uint64_t)(leb.last & 0x7f) << leb.n_bits;
		leb.n_bits += 7;
	} while (leb.last & 0x80);
	*ret = leb;
	return 0;
}

static inline int leb128_get_unsigned(struct cursor *c, uint64_t *ret_number)
{
	struct leb128 leb;

	if (leb128_read(c, &leb) < 0)
		return -EBADMSG;
	*ret_number = leb.number;
	return 0;
}

static inline int leb128_get_signed(struct cursor *c, int64_t *ret_number)
{
	struct leb128 leb;

	if (leb128_read(c, &leb) < 0)
		return -EBADMSG;
	if (leb.n_bits < 64 && leb.last & 0x40)
		leb.number |= UINT64_MAX << leb.n_bits;
	*ret_number = (int64_t)leb.number;
	return 0;
}
