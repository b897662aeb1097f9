/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * CPU list
 *
 * A set of CPUs as the kernel writes it in /sys/devices/system/cpu: "0-3,8".
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"

#define CPULIST_MAX      4096u
#define CPULIST_ONLINE   "/sys/devices/system/cpu/online"
#define CPULIST_POSSIBLE "/sys/devices/system/cpu/possible"

struct cpulist {
	uint64_t bits[CPULIST_MAX / 64];
	uint32_t end; /* the highest CPU in the set, plus 1 */
};

/* Parse @text. Return: 0; or -EBADMSG if it is no such list, or has a CPU from CPULIST_MAX on. */
_must_check_ int cpulist_parse(const char *text, struct cpulist *ret_list);

/* Read and parse the file at @path. Return: 0, or negative errno. */
_must_check_ int cpulist_read(const char *path, struct cpulist *ret_list);

static inline bool cpulist_has(const struct cpulist *list, uint32_t cpu)
{
	return cpu < CPULIST_MAX && list->bits[cpu / 64] >> cpu % 64 & 1;
}

/* Return: how many CPUs are in the set. */
uint32_t cpulist_count(const struct cpulist *list);
