/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Meminfo
 *
 * How much memory there is for others.
 */

#include <stdint.h>

/* Return: bytes that can be had without swapping, as /proc/meminfo says; 0 if it does not. */
uint64_t meminfo_available(void);

/* Return: bytes that lie free in pieces of a large page or more, as /proc/buddyinfo says; 0 if it
 * does not. To give more large pages than these, the kernel would have to move others' memory
 * first. */
uint64_t meminfo_large(void);
