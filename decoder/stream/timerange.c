/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/stream/timerange.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/base.h"

#define NS_PER_S  UINT64_C(1000000000)
#define S_PER_DAY 86400

/* Longer than any time that makes sense. */
#define TEXT_MAX 64

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Read a number of units of @unit ns, a power of ten, with or without a fraction. */
static int read_number(const char **at, uint64_t unit, uint64_t *ret_ns)
{
	uint64_t n = 0;

	if (!is_digit(**at))
		return -EINVAL;
	for (; is_digit(**at); (*at)++)
		if (__builtin_mul_overflow(n, 10, &n) ||
		    __builtin_add_overflow(n, (uint64_t)(**at - '0'), &n))
			return -EINVAL;
	if (__builtin_mul_overflow(n, unit, &n))
		return -EINVAL;
	if (**at == '.' && unit > 1) {
		for ((*at)++; is_digit(**at); (*at)++) {
			unit /= 10;
			n += unit * (uint64_t)(**at - '0');
		}
	}
	*ret_ns = n;
	return 0;
}

/* Read a number of seconds, or of what a suffix says; of ticks if time is in ticks. */
static int read_duration(const char *text, enum ptd_clock clock, uint64_t *ret_time)
{
	static const struct {
		const char *suffix;
		uint64_t unit;
	} units[] = { { "ms", 1000000 }, { "us", 1000 }, { "ns", 1 }, { "s", NS_PER_S } };
	const char *suffix = text + strspn(text, "0123456789.");
	uint64_t unit = NS_PER_S;
	int r;

	if (clock == PTD_CLOCK_TSC) {
		r = read_number(&text, 1, ret_time);
		return r == 0 && *text == 0 ? 0 : -EINVAL;
	}
	for (size_t i = 0; i < ARRAY_LEN(units); i++)
		if (strcmp(suffix, units[i].suffix) == 0)
			unit = units[i].unit;
	r = read_number(&text, unit, ret_time);
	if (r < 0 || text != suffix)
		return -EINVAL;
	for (size_t i = 0; i < ARRAY_LEN(units); i++)
		if (strcmp(suffix, units[i].suffix) == 0)
			return 0;
	return *suffix ? -EINVAL : 0;
}

/* Read [DATE ]HH:MM:SS[.FRACTION][Z] as ns of CLOCK_REALTIME; without DATE it is that of @end. */
static int read_date(const char *text, uint64_t end, uint64_t *ret_ns)
{
	unsigned year, month, day, hour, minute;
	int date_size = 0, time_size = 0;
	int64_t seconds;
	uint64_t ns;

	if (sscanf(text, "%4u-%2u-%2u%*1[T ]%n", &year, &month, &day, &date_size) == 3 &&
	    date_size > 0) {
		struct tm tm = { .tm_year = (int)year - 1900,
				 .tm_mon = (int)month - 1,
				 .tm_mday = (int)day };

		if (year < 1970 || month < 1 || month > 12 || day < 1 || day > 31)
			return -EINVAL;
		seconds = timegm(&tm);
	} else {
		date_size = 0;
		seconds = (int64_t)(end / NS_PER_S / S_PER_DAY * S_PER_DAY);
	}
	text += date_size;
	if (sscanf(text, "%2u:%2u:%n", &hour, &minute, &time_size) != 2 || time_size == 0 ||
	    hour > 23 || minute > 59)
		return -EINVAL;
	text += time_size;
	if (read_number(&text, NS_PER_S, &ns) < 0 || ns >= 61 * NS_PER_S ||
	    strcmp(text + (*text == 'Z'), "") != 0)
		return -EINVAL;
	*ret_ns = ((uint64_t)seconds + hour * 3600 + minute * 60) * NS_PER_S + ns;
	return 0;
}

static int read_time(const char *text, const struct timerange_clock *clock, uint64_t *ret_time)
{
	const uint64_t offset = (uint64_t)clock->realtime_offset_ns;
	uint64_t time;
	int r;

	if (text[0] == '-') {
		r = read_duration(text + 1, clock->clock, &time);
		if (r < 0)
			return r;
		if (clock->end == 0)
			return -ENODATA;
		*ret_time = time < clock->end ? clock->end - time : 0;
		return 0;
	}
	if (!strchr(text, ':'))
		return read_duration(text, clock->clock, ret_time);
	r = read_date(text, clock->end + offset, &time);
	if (r < 0)
		return r;
	if (clock->clock != PTD_CLOCK_NS || offset == 0 || clock->end == 0)
		return -ENODATA;
	*ret_time = (int64_t)(time - offset) > 0 ? time - offset : 0;
	return 0;
}

bool timerange_needs_end(const char *text)
{
	return strpbrk(text, "-:");
}

int timerange_parse(const char *text, const struct timerange_clock *clock,
		    struct timerange *ret_range)
{
	const char *comma = strchr(text, ',');
	const size_t size = comma ? (size_t)(comma - text) : strlen(text);
	struct timerange range = { .from = 0, .to = UINT64_MAX };
	char from[TEXT_MAX];
	int r = 0;

	if (size >= TEXT_MAX || (size == 0 && !(comma && comma[1])))
		return -EINVAL;
	memcpy(from, text, size);
	from[size] = 0;
	if (size > 0)
		r = read_time(from, clock, &range.from);
	if (r == 0 && comma && comma[1])
		r = read_time(comma + 1, clock, &range.to);
	if (r < 0)
		return r;
	*ret_range = range;
	return 0;
}
