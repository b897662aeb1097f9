/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Run pool
 *
 * The memory of runs that are decoded ahead, in chunks of one size. A thread that decodes takes
 * chunks; a chunk comes back when nobody reads its runs any more (util/hold.h). Some chunks are
 * kept to be taken again: memory that is fresh from the kernel costs more than filling it.
 */

#include <stddef.h>

#include "base/base.h"
#include "ptd/record.h"
#include "util/hold.h"

#define RUNPOOL_CHUNK_RUNS ((size_t)8192)

struct runpool;

struct runpool_chunk {
	struct ptd_hold hold;
	struct runpool *pool;       /* borrowed */
	struct runpool_chunk *next; /* of those that nobody uses */
	struct ptd_run runs[RUNPOOL_CHUNK_RUNS];
};

/* Return: 0 or -ENOMEM. */
_must_check_ int runpool_new(struct runpool **ret_pool);

/* All chunks must have come back. */
struct runpool *runpool_free(struct runpool *pool);

/* Take a chunk, of which the caller is the only user. Any thread may. Return: NULL: no memory. */
struct runpool_chunk *runpool_take(struct runpool *pool);

DEFINE_CLEANUP(struct runpool *, runpool_free);
