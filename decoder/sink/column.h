/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Column
 *
 * Writes numbers, times and durations in columns of a text. The program's locale has no influence,
 * and it takes less time than printf().
 *
 * Each function writes at @to, without a NUL, and returns the end of what it wrote. Numbers that
 * need more than the given width make the column wider.
 */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/base.h"
#include "ptd/record.h"

#define COLUMN_TIME     17 /* columns of a time, as long as its seconds have at most 7 digits */
#define COLUMN_DURATION 10

/*
 * Room that each of these functions needs at @to, if @width is not larger. Bytes behind the end
 * that it returns may be written, too.
 */
#define COLUMN_MAX 48

/* The numbers from 00 to 99: two digits at a time need half the divisions. */
extern const char column_pairs[200];

/* 10 to the power of each number. */
extern const uint64_t column_powers[20];

/* For column_number(): @v has more digits than @width. */
char *column_wide_number(char *to, uint64_t v);

/* For column_duration(): @t is in ticks, or long, or there is no clock. */
char *column_long_duration(char *to, enum ptd_clock clock, uint64_t t);

/* Write the digits of @v, which end before @end. */
static inline void column_put_digits(char *end, uint64_t v)
{
	for (; v >= 100; v /= 100) {
		end -= 2;
		memcpy(end, column_pairs + v % 100 * 2, 2);
	}
	if (v >= 10)
		memcpy(end - 2, column_pairs + v * 2, 2);
	else
		end[-1] = (char)('0' + v);
}

/* @v in decimal, padded with @fill to at least @width columns. */
static inline char *column_number(char *to, uint64_t v, size_t width, char fill)
{
	/* The digits of what fits need not be counted. */
	if (width == 0 || (width < ARRAY_LEN(column_powers) && v >= column_powers[width]))
		return column_wide_number(to, v);
	memset(to, fill, width);
	column_put_digits(to + width, v);
	return to + width;
}

/* A time: seconds with nine decimals, TSC ticks, or '-'. */
char *column_time(char *to, enum ptd_clock clock, uint64_t t);

/*
 * Times that mostly come soon after the one before: the digits that did not change are copied.
 * The caller sets the clock; all else is 0 at first.
 */
struct column_times {
	enum ptd_clock clock;
	uint64_t start; /* the time of the text */
	char text[COLUMN_MAX];
	size_t size; /* of the text; 0: there is none yet */
};

#define COLUMN_TIMES_STEP  10000 /* times in one step differ in the last four digits */
#define COLUMN_TIMES_SHOWN 24    /* bytes of any time */

/* For column_times_put(): write the text of the time at which the step of @t begins. */
void column_times_begin(struct column_times *times, uint64_t t);

/* The same as column_time(). */
static inline char *column_times_put(struct column_times *times, char *to, uint64_t t)
{
	uint64_t rest = t - times->start;

	/* The first ticks have less than four digits, and a trace without a clock has none. */
	if (times->clock != PTD_CLOCK_NS &&
	    (times->clock != PTD_CLOCK_TSC || t < COLUMN_TIMES_STEP))
		return column_time(to, times->clock, t);
	if (times->size == 0 || rest >= COLUMN_TIMES_STEP) {
		column_times_begin(times, t);
		rest = t - times->start;
	}
	memcpy(to, times->text, COLUMN_TIMES_SHOWN);
	to += times->size;
	memcpy(to - 4, column_pairs + rest / 100 * 2, 2);
	memcpy(to - 2, column_pairs + rest % 100 * 2, 2);
	return to;
}

/* Write @v, which is less than 1000, in three columns. */
static inline void column_put_three(char *to, uint32_t v, char fill)
{
	const uint32_t hundreds = v / 100;

	to[0] = hundreds > 0 ? (char)('0' + hundreds) : fill;
	memcpy(to + 1, column_pairs + v % 100 * 2, 2);
	if (v < 10)
		to[1] = fill;
}

/* A duration: with three decimals in us, ms or s, truncated; or TSC ticks, or '-'. */
static inline char *column_duration(char *to, enum ptd_clock clock, uint64_t t)
{
	if (clock != PTD_CLOCK_NS || t >= 1000000)
		return column_long_duration(to, clock, t);
	column_put_three(to, (uint32_t)t / 1000, ' ');
	to[3] = '.';
	column_put_three(to + 4, (uint32_t)t % 1000, '0');
	memcpy(to + 7, " us", 3);
	return to + COLUMN_DURATION;
}

/* The part in percent with two decimals, in 7 columns. 0 is 0 % of 0. */
char *column_percent(char *to, uint64_t part, uint64_t whole);
