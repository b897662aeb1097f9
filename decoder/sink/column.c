/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/sink/column.h"

#include <string.h>

#define WIDTH_MAX 24 /* of a usual column */

/* The numbers from 00 to 99: two digits at a time need half the divisions. */
static const char pairs[] = "00010203040506070809101112131415161718192021222324"
			    "25262728293031323334353637383940414243444546474849"
			    "50515253545556575859606162636465666768697071727374"
			    "75767778798081828384858687888990919293949596979899";

/* Return: how many digits @v has. */
static size_t count_digits(uint64_t v)
{
	size_t n = 1;

	for (uint64_t end = 10; v >= end && n < 20; n++)
		end = n < 19 ? end * 10 : UINT64_MAX;
	return n;
}

char *column_number(char *to, uint64_t v, size_t width, char fill)
{
	const size_t n = count_digits(v);
	char *const end = to + (n < width ? width : n);

	/* What is too much is written over; a constant size takes far less time. */
	if (width <= WIDTH_MAX)
		memset(to, fill, WIDTH_MAX);
	else
		memset(to, fill, width);
	for (to = end; v >= 10; v /= 100) {
		to -= 2;
		memcpy(to, pairs + v % 100 * 2, 2);
	}
	if (to > end - n)
		to[-1] = (char)('0' + v);
	return end;
}

static char *put_dash(char *to, size_t width)
{
	memset(to, ' ', width - 1);
	to[width - 1] = '-';
	return to + width;
}

char *column_time(char *to, enum ptd_clock clock, uint64_t t)
{
	if (clock == PTD_CLOCK_TSC)
		return column_number(to, t, COLUMN_TIME, ' ');
	if (clock != PTD_CLOCK_NS)
		return put_dash(to, COLUMN_TIME);
	to = column_number(to, t / 1000000000, COLUMN_TIME - 10, ' ');
	*to++ = '.';
	return column_number(to, t % 1000000000, 9, '0');
}

char *column_duration(char *to, enum ptd_clock clock, uint64_t t)
{
	static const struct {
		uint64_t end, thousandth; /* ns */
		char unit[4];
		uint8_t unit_size;
	} rows[] = {
		{ 1000000, 1, " us", 3 },
		{ 1000000000, 1000, " ms", 3 },
		{ 1000000000000, 1000000, " s", 2 },
	};

	if (clock == PTD_CLOCK_TSC)
		return column_number(to, t, COLUMN_DURATION, ' ');
	if (clock != PTD_CLOCK_NS)
		return put_dash(to, COLUMN_DURATION);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const uint64_t n = t / rows[i].thousandth;

		if (t >= rows[i].end)
			continue;
		to = column_number(to, n / 1000, COLUMN_DURATION - 4u - rows[i].unit_size, ' ');
		*to++ = '.';
		to = column_number(to, n % 1000, 3, '0');
		memcpy(to, rows[i].unit, sizeof(rows[i].unit));
		return to + rows[i].unit_size;
	}
	to = column_number(to, t / 1000000000, COLUMN_DURATION - 2, ' ');
	memcpy(to, " s", 2);
	return to + 2;
}

char *column_percent(char *to, uint64_t part, uint64_t whole)
{
	const unsigned __int128 n =
	    whole ? ((unsigned __int128)part * 10000 + whole / 2) / whole : 0;

	to = column_number(to, (uint64_t)(n / 100), 4, ' ');
	*to++ = '.';
	return column_number(to, (uint64_t)(n % 100), 2, '0');
}
