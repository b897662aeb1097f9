/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Suspend
 *
 * Notices that the machine was suspended: CLOCK_BOOTTIME counts that time, and CLOCK_MONOTONIC does
 * not.
 */

#include <stdbool.h>
#include <stdint.h>

struct suspend {
	int64_t ns; /* that the machine had spent suspended at the last look */
};

/* The two clocks, read one after the other, in ns. */
struct suspend_look {
	int64_t before; /* CLOCK_MONOTONIC */
	int64_t boot;   /* CLOCK_BOOTTIME */
	int64_t after;  /* CLOCK_MONOTONIC */
};

/* Take the first look. */
void suspend_init(struct suspend *suspend);

/* Return: whether the machine was suspended since the last look. */
bool suspend_happened(struct suspend *suspend);

/* The same for clocks that the caller has read. A look between whose readings the caller lost its
 * CPU says nothing, and is ignored. */
bool suspend_seen(struct suspend *suspend, const struct suspend_look *look);
