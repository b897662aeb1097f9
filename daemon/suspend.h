/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Suspend
 *
 * Notices that the machine was suspended: CLOCK_BOOTTIME counts that time, CLOCK_MONOTONIC does not.
 */

#include <stdbool.h>
#include <stdint.h>

struct suspend {
	int64_t ns; /* spent suspended, when it was last looked */
};

/* Begin to look. */
void suspend_init(struct suspend *suspend);

/* Return: whether the machine was suspended since it was last looked. */
bool suspend_happened(struct suspend *suspend);
