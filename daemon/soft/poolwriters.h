/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Pool writers
 *
 * The processes that write to the software source's pool: as long as one of them lives, there may
 * be more records. Records name them, but a record may name any process: whoever writes has the
 * pool mapped.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

#define POOLWRITERS_MAX \
	64u /* processes watched. A recording of more is noticed through the others */

struct poolwriters {
	int pool_fd; /* borrowed */
	size_t n;
	uint32_t pids[POOLWRITERS_MAX]; /* not known to be dead */
};

/*
 * A record names @pid: watch it if it is a writer.
 *
 * @n_checks: 0 before the first of some records. Those of a scribbled ring may name as many
 *            processes as it holds, so no more than POOLWRITERS_MAX are looked at.
 */
void poolwriters_note(struct poolwriters *writers, uint32_t pid, unsigned *n_checks);

/* Forgets those that are dead behind the last one that is alive. Return: whether one is. */
bool poolwriters_alive(struct poolwriters *writers);

/* Return: whether the process has the pool mapped, as far as that can be seen. */
bool poolwriters_has_pool(const struct poolwriters *writers, uint32_t pid);
