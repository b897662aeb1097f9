/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Time span
 *
 * A length of time as users write it: a number, which may have a fraction, and a unit behind it.
 * "500ms", "1.5h", "30d". Units are us, ms, s, min, h, d and w; without one the number is in
 * seconds.
 */

#include <stdint.h>

#include "base/base.h"

/* The longest span, in ns: some 292 years. */
#define TIMESPAN_MAX_NS ((uint64_t)INT64_MAX)

/* Parse @text. Return: 0; or -EINVAL if it is no span, or longer than TIMESPAN_MAX_NS. */
_must_check_ int timespan_parse(const char *text, uint64_t *ret_ns);
