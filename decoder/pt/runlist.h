/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Runlist
 *
 * The runs that a step of an engine fills in, copied from those of segments.
 */

#include <stddef.h>
#include <stdint.h>

#include "decoder/image/view.h"
#include "ptd/record.h"

struct runlist {
	struct ptd_run *runs; /* borrowed */
	size_t n, n_max;
	uint64_t n_insns; /* of all runs */
};

/* Copy all runs of @seg, which has some, with time @t. Return: behind the last one. */
static inline struct ptd_run *runlist_copy(struct ptd_run *to, const struct seg *seg, uint64_t t)
{
	const struct ptd_run *run = seg->runs;
	size_t left = seg->n_runs;

	do {
		*to = *run++;
		to++->t = t;
	} while (--left > 0);
	return to;
}

/* Add the instructions of @seg from number @first on before number @end. There must be room. */
void runlist_add(struct runlist *list, const struct seg *seg, size_t first, size_t end, uint64_t t);
