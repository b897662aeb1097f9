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

#include "ptd/record.h"

#define COLUMN_TIME     17 /* columns of a time, as long as its seconds have at most 7 digits */
#define COLUMN_DURATION 10

/*
 * Room that each of these functions needs at @to, if @width is not larger. Bytes behind the end
 * that it returns may be written, too.
 */
#define COLUMN_MAX 48

/* @v in decimal, padded with @fill to at least @width columns. */
char *column_number(char *to, uint64_t v, size_t width, char fill);

/* A time: seconds with nine decimals, TSC ticks, or '-'. */
char *column_time(char *to, enum ptd_clock clock, uint64_t t);

/*
 * Times, most of which come soon after the one before: the digits that did not change are copied.
 * The caller sets the clock; all else is 0 at first.
 */
struct column_times {
	enum ptd_clock clock;
	uint64_t start; /* the time of the text */
	char text[COLUMN_MAX];
	size_t size; /* of the text; 0: there is none yet */
};

/* The same as column_time(). */
char *column_times_put(struct column_times *times, char *to, uint64_t t);

/* A duration: with three decimals in us, ms or s, truncated; or TSC ticks, or '-'. */
char *column_duration(char *to, enum ptd_clock clock, uint64_t t);

/* The part in percent with two decimals, in 7 columns. 0 is 0 % of 0. */
char *column_percent(char *to, uint64_t part, uint64_t whole);
