/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Time range
 *
 * A range of times of the stream, as a user writes it (ptd_part.time).
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "ptd/record.h"

/* What times are about. */
struct timerange_clock {
	enum ptd_clock clock;
	int64_t realtime_offset_ns; /* 0: not known */
	uint64_t end;               /* of the PT; 0: not known */
};

struct timerange {
	uint64_t from, to; /* from @from on and before @to */
};

/* Return: whether timerange_parse() needs the end of the PT for @text. */
bool timerange_needs_end(const char *text);

/*
 * Read @text.
 *
 * Return: 0; -EINVAL if it makes no sense; -ENODATA if it needs what is not known of the clock.
 */
_must_check_ int timerange_parse(const char *text, const struct timerange_clock *clock,
				 struct timerange *ret_range);
