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
	const size_t n = seg->n_runs;

	*to = *run;
	to->t = t;
	/* Nearly all segments have one run. */
	if (__builtin_expect(n > 1, 0)) {
		for (size_t i = 1; i < n; i++) {
			to[i] = run[i];
			to[i].t = t;
		}
	}
	return to + n;
}

/* Add the instructions of @seg from number @first on before number @end. There must be room. */
void runlist_add(struct runlist *list, const struct seg *seg, size_t first, size_t end, uint64_t t);
