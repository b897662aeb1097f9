/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/pt/runlist.h"

void runlist_add(struct runlist *list, const struct seg *seg, size_t first, size_t end, uint64_t t)
{
	size_t at = 0;

	for (size_t i = 0; i < seg->n_runs && at < end; at += seg->runs[i++].n) {
		const size_t n = seg->runs[i].n;
		const size_t skipped = first > at ? first - at : 0;
		const size_t left = end - at < n ? end - at : n;
		struct ptd_run *run = &list->runs[list->n];

		if (skipped >= left)
			continue;
		*run = seg->runs[i];
		run->t = t;
		run->first = (uint16_t)skipped;
		run->n = (uint16_t)(left - skipped);
		list->n++;
		list->n_insns += run->n;
	}
}
