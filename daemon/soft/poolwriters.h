/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Pool writers
 *
 * Remembers the processes that write to the pool of the software source. As long as one of them
 * lives, more records may come. Records name processes, but a record may name any process; a writer
 * is one that has the pool mapped.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

/* Processes that are remembered. If more of them write, the others show that recording goes on. */
#define POOLWRITERS_MAX 64u

struct poolasker;

struct poolwriters {
	struct poolasker *asker; /* borrowed */
	int pool_fd;             /* borrowed */
	uint64_t born;           /* birth_of() the process that made the pool */
	size_t n;
	uint32_t pids[POOLWRITERS_MAX]; /* not known to be dead */
};

/*
 * A record names the process @pid: remember it if it is a writer. Only the event loop calls this.
 *
 * @n_checks: counts the processes that were looked at for some records; 0 before the first of them.
 *            No more than POOLWRITERS_MAX are looked at, because an overwritten ring may name as
 *            many processes as it has room for.
 */
void poolwriters_note(struct poolwriters *writers, uint32_t pid, unsigned *n_checks);

/* Return: whether a writer lives. Dead ones may be forgotten. Only the event loop calls this. */
bool poolwriters_alive(struct poolwriters *writers);

/* Return: whether the process has the pool mapped, as far as that can be seen. Any thread may call
 * this. */
bool poolwriters_has_pool(const struct poolwriters *writers, uint32_t pid);
