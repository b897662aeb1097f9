/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/sink/column.h"

const char column_pairs[200] = { "00010203040506070809101112131415161718192021222324"
				 "25262728293031323334353637383940414243444546474849"
				 "50515253545556575859606162636465666768697071727374"
				 "75767778798081828384858687888990919293949596979899" };

const uint64_t column_powers[20] = { 1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,
				     1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19 };

/* Return: how many digits @v has. */
static size_t count_digits(uint64_t v)
{
	/* 1233 / 4096 is the logarithm of 2: a number of @n_bits bits has at least @n digits. */
	const unsigned int n_bits = 64u - (unsigned int)__builtin_clzll(v | 1);
	const unsigned int n = n_bits * 1233 >> 12;

	return n + ((v | 1) >= column_powers[n]);
}

char *column_wide_number(char *to, uint64_t v)
{
	const size_t width = count_digits(v);

	column_put_digits(to + width, v);
	return to + width;
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

void column_times_begin(struct column_times *times, uint64_t t)
{
	times->start = t - t % COLUMN_TIMES_STEP;
	times->size = (size_t)(column_time(times->text, times->clock, times->start) - times->text);
}

/* Write @thousandths, less than a million, in seven columns, and the unit. */
static char *put_thousandths(char *to, uint64_t thousandths, const char *unit, size_t unit_size)
{
	column_put_three(to, (uint32_t)thousandths / 1000, ' ');
	to[3] = '.';
	column_put_three(to + 4, (uint32_t)thousandths % 1000, '0');
	return mempcpy(to + 7, unit, unit_size);
}

char *column_long_duration(char *to, enum ptd_clock clock, uint64_t t)
{
	if (clock == PTD_CLOCK_TSC)
		return column_number(to, t, COLUMN_DURATION, ' ');
	if (clock != PTD_CLOCK_NS)
		return put_dash(to, COLUMN_DURATION);
	if (t < 1000000000)
		return put_thousandths(to, t / 1000, " ms", 3);
	if (t < 1000000000000) {
		*to++ = ' ';
		return put_thousandths(to, t / 1000000, " s", 2);
	}
	to = column_number(to, t / 1000000000, COLUMN_DURATION - 2, ' ');
	return mempcpy(to, " s", 2);
}

char *column_percent(char *to, uint64_t part, uint64_t whole)
{
	const unsigned __int128 n =
	    whole ? ((unsigned __int128)part * 10000 + whole / 2) / whole : 0;

	to = column_number(to, (uint64_t)(n / 100), 4, ' ');
	*to++ = '.';
	return column_number(to, (uint64_t)(n % 100), 2, '0');
}
