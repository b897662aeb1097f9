/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Effort
 *
 * The limits on reading or copying a file that somebody else may write to meanwhile. The file may
 * grow faster than it is read, and its disk may be slow: so a reader stops at a size, at a
 * time, or when another thread asks for that. A NULL effort has no limits.
 */

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "base/base.h"
#include "base/clock.h"
#include "util/cancel.h"

struct effort {
	uint64_t size_max;         /* bytes that the file may have */
	uint64_t until_ns;         /* of CLOCK_MONOTONIC; 0: no limit */
	const atomic_bool *cancel; /* borrowed: true asks to stop; may be NULL */
};

/* Return: how many bytes the file may have. */
static inline uint64_t effort_size(const struct effort *effort)
{
	return effort ? effort->size_max : UINT64_MAX;
}

/*
 * Check the limits before the next piece of work.
 *
 * Return: 0 to go on; -ECANCELED if another thread asked to stop; -ETIMEDOUT if the time is over.
 */
_must_check_ static inline int effort_check(const struct effort *effort)
{
	if (!effort)
		return 0;
	if (cancel_asked(effort->cancel))
		return -ECANCELED;
	return effort->until_ns > 0 && clock_ns(CLOCK_MONOTONIC) > effort->until_ns ? -ETIMEDOUT
										    : 0;
}
