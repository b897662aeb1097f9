/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Run pool
 *
 * The memory of runs that are decoded ahead, in chunks of one size. A thread that decodes takes
 * chunks; a chunk comes back when its last reader is done (decoder/util/hold.h). Some chunks are
 * kept to be taken again, by the same thread: memory that is fresh from the kernel, or in the cache
 * of another CPU, costs more than filling it.
 */

#include <stddef.h>

#include "base/base.h"
#include "decoder/util/hold.h"
#include "ptd/record.h"

#define RUNPOOL_CHUNK_RUNS ((size_t)8192)

struct runpool;

struct runpool_chunk {
	struct ptd_hold hold;
	struct runpool *pool;       /* borrowed */
	struct runpool_chunk *next; /* of the unused ones */
	struct ptd_run runs[RUNPOOL_CHUNK_RUNS];
};

/* Make a pool for @n_threads threads. Return: 0 or -ENOMEM. */
_must_check_ int runpool_new(size_t n_threads, struct runpool **ret_pool);

/* All chunks must have come back. */
struct runpool *runpool_free(struct runpool *pool);

/* Take a chunk for the thread with the number @thread; the caller is its only user. Return: NULL:
 * no memory. */
struct runpool_chunk *runpool_take(struct runpool *pool, size_t thread);

DEFINE_CLEANUP(struct runpool *, runpool_free);
