/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/sink/html/packed.h"

static void put_group(struct packed *packed)
{
	static const char digits[] =
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const uint32_t group =
	    (uint32_t)packed->bytes[0] << 16 | (uint32_t)packed->bytes[1] << 8 | packed->bytes[2];
	char text[4];

	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = i <= packed->n ? digits[group >> (18 - 6 * i) & 63] : '=';
	(void)output_write(packed->output, text, sizeof(text));
	packed->n = 0;
}

void packed_byte(struct packed *packed, uint8_t byte)
{
	packed->bytes[packed->n++] = byte;
	if (packed->n == sizeof(packed->bytes))
		put_group(packed);
}

void packed_number(struct packed *packed, uint64_t number)
{
	for (; number > 127; number >>= 7)
		packed_byte(packed, (uint8_t)(number | 128));
	packed_byte(packed, (uint8_t)number);
}

void packed_end(struct packed *packed)
{
	if (packed->n == 0)
		return;
	for (size_t i = packed->n; i < sizeof(packed->bytes); i++)
		packed->bytes[i] = 0;
	put_group(packed);
}
