/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/file/recsort.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/file/trace.h"
#include "decoder/util/vec.h"

/* Merge from[start..middle) and from[middle..end), both in order, to to[start..end). */
static void merge(const struct trace_record *from, struct trace_record *to, size_t start,
		  size_t middle, size_t end)
{
	size_t a = start, b = middle;

	for (size_t i = start; i < end; i++) {
		if (b == end || (a < middle && from[a].time <= from[b].time))
			to[i] = from[a++];
		else
			to[i] = from[b++];
	}
}

int recsort(struct trace_record *records, size_t n)
{
	VEC(size_t) ends = {}; /* of the runs */
	struct trace_record *from = records, *to, *scratch = NULL;
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++)
		if (i + 1 == n || records[i + 1].time < records[i].time)
			r = vec_push(&ends, i + 1);
	if (r < 0 || ends.n <= 1)
		goto out;

	scratch = to = calloc(n, sizeof(*scratch));
	if (!scratch) {
		r = -ENOMEM;
		goto out;
	}

	/* Each pass merges neighbours and so halves the number of runs. */
	while (ends.n > 1) {
		struct trace_record *swap = from;
		size_t start = 0, n_merged = 0;

		for (size_t i = 0; i < ends.n; i += 2) {
			const size_t middle = ends.items[i];
			const size_t end = i + 1 < ends.n ? ends.items[i + 1] : middle;

			merge(from, to, start, middle, end);
			ends.items[n_merged++] = end;
			start = end;
		}
		ends.n = n_merged;
		from = to;
		to = swap;
	}
	if (from != records)
		memcpy(records, from, n * sizeof(*records));
out:
	vec_deinit(&ends);
	free(scratch);
	return r;
}
