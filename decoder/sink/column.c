/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/sink/column.h"

#include <string.h>

char *column_number(char *to, uint64_t v, size_t width, char fill)
{
	char digits[20];
	size_t n = 0;

	do
		digits[n++] = (char)('0' + v % 10);
	while ((v /= 10) > 0);
	for (size_t i = n; i < width; i++)
		*to++ = fill;
	while (n > 0)
		*to++ = digits[--n];
	return to;
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
		const char *unit;
	} rows[] = {
		{ 1000000, 1, " us" },
		{ 1000000000, 1000, " ms" },
		{ 1000000000000, 1000000, "  s" },
	};

	if (clock == PTD_CLOCK_TSC)
		return column_number(to, t, COLUMN_DURATION, ' ');
	if (clock != PTD_CLOCK_NS)
		return put_dash(to, COLUMN_DURATION);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const uint64_t n = t / rows[i].thousandth;

		if (t >= rows[i].end)
			continue;
		to = column_number(to, n / 1000, 3, ' ');
		*to++ = '.';
		to = column_number(to, n % 1000, 3, '0');
		memcpy(to, rows[i].unit, 3);
		return to + 3;
	}
	to = column_number(to, t / 1000000000, 7, ' ');
	memcpy(to, "  s", 3);
	return to + 3;
}

char *column_percent(char *to, uint64_t part, uint64_t whole)
{
	const unsigned __int128 n =
	    whole ? ((unsigned __int128)part * 10000 + whole / 2) / whole : 0;

	to = column_number(to, (uint64_t)(n / 100), 4, ' ');
	*to++ = '.';
	return column_number(to, (uint64_t)(n % 100), 2, '0');
}
