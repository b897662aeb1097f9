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
