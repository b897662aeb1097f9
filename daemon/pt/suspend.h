/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Suspend
 *
 * Notices that the machine was suspended: CLOCK_BOOTTIME counts that time, CLOCK_MONOTONIC does
 * not.
 */

#include <stdbool.h>
#include <stdint.h>

struct suspend {
	int64_t ns; /* spent suspended, when it was last looked */
};

/* The two clocks, read one after the other. */
struct suspend_look {
	int64_t before, boot, after; /* CLOCK_MONOTONIC, CLOCK_BOOTTIME, CLOCK_MONOTONIC, in ns */
};

/* Begin to look. */
void suspend_init(struct suspend *suspend);

/* Return: whether the machine was suspended since it was last looked. */
bool suspend_happened(struct suspend *suspend);

/* The same of clocks that were read by somebody. Who reads them may be kept from a CPU between one
 * and the next: a look that took long says nothing. */
bool suspend_seen(struct suspend *suspend, const struct suspend_look *look);
