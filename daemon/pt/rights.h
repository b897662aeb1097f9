/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Rights
 *
 * Whether the kernel will let us record hardware, found out before it refuses: it says no more than
 * "permission denied", and three things must be right at once.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

struct rights {
	int paranoid; /* kernel.perf_event_paranoid */
	bool perfmon, sys_admin, ipc_lock;
	uint64_t memlock;    /* bytes, RLIMIT_MEMLOCK; UINT64_MAX: no limit */
	uint64_t free_bytes; /* that any user may lock for rings */
};

/* What @n_cpus CPUs and we ourselves are allowed. What cannot be read counts as it is by
 * default. */
void rights_read(uint32_t n_cpus, struct rights *ret_rights);

/*
 * Are they enough to trace all CPUs, @kernel code too, with rings of @bytes together?
 *
 * Return: 0; or -EACCES, and @reterr_message says what is missing and how to mend it.
 */
_must_check_ int rights_check(const struct rights *rights, bool kernel, uint64_t bytes,
			      char *reterr_message, size_t message_size);
