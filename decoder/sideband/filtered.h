/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Filtered
 *
 * At which addresses the CPUs filtered PT: address filters name files, and the records say where
 * these were mapped.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/trace/trace.h"

/* A CPU has no more. But processes may have mapped one file at different addresses. */
#define FILTERED_RANGES_MAX 4

enum {
	FILTERED_TOO_MANY = 1, /* there are more ranges, in all processes, than that */
};

struct filtered {
	struct filtered_range {
		uint64_t first, last; /* inclusive */
		bool stops;
	} ranges[FILTERED_RANGES_MAX];
	size_t n;
};

/* Find the ranges of all processes of @trace, each once. Return: 0 or FILTERED_TOO_MANY. */
_must_check_ int filtered_find(const struct trace *trace, struct filtered *ret_filtered);
