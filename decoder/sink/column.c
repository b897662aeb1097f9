/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/sink/column.h"

#include <stdbool.h>
#include <string.h>

#include "base/base.h"

#define WIDTH_MAX 24 /* of a usual column */

/* The numbers from 00 to 99: two digits at a time need half the divisions. */
static const char pairs[] = "00010203040506070809101112131415161718192021222324"
			    "25262728293031323334353637383940414243444546474849"
			    "50515253545556575859606162636465666768697071727374"
			    "75767778798081828384858687888990919293949596979899";

/* 10 to the power of each number. */
static const uint64_t powers[] = { 1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,
				   1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19 };

/* Return: how many digits @v has. */
static size_t count_digits(uint64_t v)
{
	/* 1233 / 4096 is the logarithm of 2: of so many bits, @n digits at least. */
	const unsigned int n_bits = 64u - (unsigned int)__builtin_clzll(v | 1);
	const unsigned int n = n_bits * 1233 >> 12;

	return n + ((v | 1) >= powers[n]);
}

/* Return: whether @v has more digits than @width, of which there is at least one. */
static bool is_wider(uint64_t v, size_t width)
{
	return width < ARRAY_LEN(powers) && v >= powers[width];
}

/* Write the digits of @v, which end before @end. */
static inline void put_digits(char *end, uint64_t v)
{
	for (; v >= 100; v /= 100) {
		end -= 2;
		memcpy(end, pairs + v % 100 * 2, 2);
	}
	if (v >= 10)
		memcpy(end - 2, pairs + v * 2, 2);
	else
		end[-1] = (char)('0' + v);
}

char *column_number(char *to, uint64_t v, size_t width, char fill)
{
	/* The digits of what fits need not be counted. */
	if (width == 0 || is_wider(v, width))
		width = count_digits(v);
	/* What is too much is written over; a constant size takes far less time. */
	if (width <= WIDTH_MAX)
		memset(to, fill, WIDTH_MAX);
	else
		memset(to, fill, width);
	put_digits(to + width, v);
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

#define TIMES_STEP  10000 /* times that differ by less than this differ in the last four digits */
#define TIMES_SHOWN 24    /* bytes of all usual times */

/* Write the text of the time at which the step of @t begins. */
static void begin_step(struct column_times *times, uint64_t t)
{
	times->start = t - t % TIMES_STEP;
	times->size = (size_t)(column_time(times->text, times->clock, times->start) - times->text);
}

char *column_times_put(struct column_times *times, char *to, uint64_t t)
{
	uint64_t rest = t - times->start;

	/* The first ticks have less than four digits, and a trace without a clock has none. */
	if (times->clock != PTD_CLOCK_NS && (times->clock != PTD_CLOCK_TSC || t < TIMES_STEP))
		return column_time(to, times->clock, t);
	if (times->size == 0 || rest >= TIMES_STEP) {
		begin_step(times, t);
		rest = t - times->start;
	}
	memcpy(to, times->text, TIMES_SHOWN);
	to += times->size;
	memcpy(to - 4, pairs + rest / 100 * 2, 2);
	memcpy(to - 2, pairs + rest % 100 * 2, 2);
	return to;
}

/* Write @v, which is less than 1000, in three columns. */
static void put_three(char *to, uint32_t v, char fill)
{
	to[0] = v >= 100 ? (char)('0' + v / 100) : fill;
	memcpy(to + 1, pairs + v % 100 * 2, 2);
	if (v < 10)
		to[1] = fill;
}

/* Write @thousandths, less than a million, in seven columns, and the unit. */
static char *put_thousandths(char *to, uint64_t thousandths, const char *unit, size_t unit_size)
{
	put_three(to, (uint32_t)thousandths / 1000, ' ');
	to[3] = '.';
	put_three(to + 4, (uint32_t)thousandths % 1000, '0');
	memcpy(to + 7, unit, unit_size);
	return to + 7 + unit_size;
}

char *column_duration(char *to, enum ptd_clock clock, uint64_t t)
{
	if (clock == PTD_CLOCK_TSC)
		return column_number(to, t, COLUMN_DURATION, ' ');
	if (clock != PTD_CLOCK_NS)
		return put_dash(to, COLUMN_DURATION);
	if (t < 1000000)
		return put_thousandths(to, t, " us", 3);
	if (t < 1000000000)
		return put_thousandths(to, t / 1000, " ms", 3);
	if (t < 1000000000000) {
		*to++ = ' ';
		return put_thousandths(to, t / 1000000, " s", 2);
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
