/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Memory info
 *
 * How much memory of the machine is available.
 */

#include <stdint.h>

/* Return: bytes that are available without swapping, by /proc/meminfo; 0 if it does not say. */
uint64_t meminfo_available(void);

/* Return: bytes that the control groups of this process allow their processes; UINT64_MAX: they set
 *         no limit. */
uint64_t meminfo_limit(void);

/* Return: bytes that are free in pieces of at least a large page, by /proc/buddyinfo; 0 if it does
 *         not say. For more large pages the kernel would have to move memory of others first. */
uint64_t meminfo_large(void);
