/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Option
 *
 * The values of the options that several kinds of sinks take. Each function leaves @ret_value alone
 * if the option was not given.
 */

#include <stdint.h>

#include "base/base.h"
#include "decoder/sink/sink.h"

/* Parse a decimal number. Return: 0; or -EINVAL if the value is none. */
_must_check_ int option_number(const struct sink_config *config, const char *name,
			       uint64_t *ret_value);

/*
 * Parse a duration in the unit of the stream's clock: a number of ns or of TSC ticks; with ns, it
 * may end with ns, us, ms or s.
 *
 * Return: 0; or -EINVAL if the value is none, or if the stream has no time.
 */
_must_check_ int option_duration(const struct sink_config *config, const char *name,
				 uint64_t *ret_value);
