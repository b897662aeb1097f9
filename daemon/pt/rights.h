/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Rights
 *
 * Finds out whether the kernel will allow ptd to record hardware. The kernel itself only says
 * "permission denied", and three things must be right at once: a capability, a sysctl and the limit
 * of locked memory.
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

/* Read what the process is allowed on a machine with @n_cpus CPUs. What cannot be read is taken to
 * be the kernel's default. */
void rights_read(uint32_t n_cpus, struct rights *ret_rights);

/* What is to be traced. */
enum rights_of {
	RIGHTS_OF_CHILDREN, /* user code of processes of the same user */
	RIGHTS_OF_USERS,    /* user code of all CPUs */
	RIGHTS_OF_KERNEL,   /* kernel code, too */
};

/* Return: how many bytes of rings may be locked in memory; UINT64_MAX: there is no limit. */
uint64_t rights_lockable(const struct rights *rights);

/*
 * Check whether @rights suffice to trace @of with rings of @bytes together.
 *
 * Return: 0; or -EACCES, and @reterr_message says what is missing and how to mend it.
 */
_must_check_ int rights_check(const struct rights *rights, enum rights_of of, uint64_t bytes,
			      char *reterr_message, size_t message_size);
