/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * PT end
 *
 * When the PT of a trace ends, found without decoding it.
 */

#include <stdint.h>

#include "base/base.h"

struct engine_config;
struct trace;

/*
 * Find the last time that the PT states, as the stream has times. The PT is read as @config says,
 * but for its span.
 *
 * Return: 0 and @ret_end, 0 if no time is known; or -errno of reading.
 */
_must_check_ int ptend_find(const struct trace *trace, const struct engine_config *config,
			    uint64_t *ret_end);

/*
 * The rings of a snapshot were read one after the other. Leave out what they have of a later time
 * than the one until which all of them are complete: a thread may have run on another CPU before,
 * whose ring lacks it.
 *
 * Return: 0, or -errno of reading.
 */
_must_check_ int ptend_cut(struct trace *trace, const struct engine_config *config);
