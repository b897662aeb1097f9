/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Filtered ranges
 *
 * The address ranges by which the CPUs filtered PT: an address filter names files, and the sideband
 * states where the files were mapped.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/trace/trace.h"

/* A CPU has no more ranges. Processes may have mapped one file at more addresses, though. */
#define FILTERED_RANGES_MAX 4

enum {
	FILTERED_TOO_MANY =
	    1, /* the processes together have more ranges than FILTERED_RANGES_MAX */
};

struct filtered {
	struct filtered_range {
		uint64_t first, last; /* inclusive */
		bool stops;           /* PT stops when code in the range is reached */
	} ranges[FILTERED_RANGES_MAX];
	size_t n;
};

/*
 * Find the ranges of all processes in @trace, each range once.
 *
 * Return: 0; or FILTERED_TOO_MANY, and @ret_filtered is not changed.
 */
_must_check_ int filtered_find(const struct trace *trace, struct filtered *ret_filtered);
