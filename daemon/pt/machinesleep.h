/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Machine sleep
 *
 * Notices that the machine was suspended: CLOCK_BOOTTIME counts that time, and CLOCK_MONOTONIC does
 * not.
 */

#include <stdbool.h>
#include <stdint.h>

struct machinesleep {
	int64_t ns; /* that the machine had spent suspended at the last look */
};

/* The two clocks, read one after the other, in ns. */
struct machinesleep_look {
	int64_t before; /* CLOCK_MONOTONIC */
	int64_t boot;   /* CLOCK_BOOTTIME */
	int64_t after;  /* CLOCK_MONOTONIC */
};

/* Take the first look. */
void machinesleep_init(struct machinesleep *sleep);

/* Return: whether the machine was suspended since the last look. */
bool machinesleep_happened(struct machinesleep *sleep);

/* The same for clocks that the caller has read. A look between whose readings the caller lost its
 * CPU says nothing, and is ignored. */
bool machinesleep_seen(struct machinesleep *sleep, const struct machinesleep_look *look);
