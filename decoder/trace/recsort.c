/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/trace/recsort.h"

#include "decoder/trace/trace.h"
#include "decoder/util/table.h"
#include "util/vec.h"

/* How many records are looked at before their memory is given back. */
#define REST 4096

struct pass {
	struct table *from, *to;
	size_t n_until_rest;
};

/* Merge [start..middle) and [middle..end), both in order, to [start..end). */
static void merge_runs(struct pass *pass, size_t start, size_t middle, size_t end)
{
	const struct trace_record *from = pass->from->items;
	struct trace_record *to = pass->to->items;
	size_t a = start, b = middle;

	for (size_t i = start; i < end; i++) {
		if (b == end || (a < middle && from[a].time <= from[b].time))
			to[i] = from[a++];
		else
			to[i] = from[b++];
		if (--pass->n_until_rest == 0) {
			table_evict(pass->from);
			table_evict(pass->to);
			pass->n_until_rest = REST;
		}
	}
}

static void swap_tables(struct table *a, struct table *b)
{
	const struct table swap = *a;

	*a = *b;
	*b = swap;
}

/* Each pass merges neighbours and so halves the number of runs; the records are in @from then. */
static void merge_all(struct table *from, struct table *to, size_t *ends, size_t n_ends)
{
	struct pass pass = { .from = from, .to = to, .n_until_rest = REST };

	while (n_ends > 1) {
		size_t start = 0, n_merged = 0;

		for (size_t i = 0; i < n_ends; i += 2) {
			const size_t end = i + 1 < n_ends ? ends[i + 1] : ends[i];

			merge_runs(&pass, start, ends[i], end);
			ends[n_merged++] = end;
			start = end;
		}
		n_ends = n_merged;
		swap_tables(from, to);
	}
}

int recsort(struct table *from, size_t n, struct table *to)
{
	const struct trace_record *records = from->items;
	VEC(size_t) ends = {}; /* of the runs */
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++) {
		if (i + 1 == n || records[i + 1].time < records[i].time)
			r = vec_push(&ends, i + 1);
		if (i % REST == 0)
			table_evict(from);
	}
	if (r == 0 && ends.n > 1) {
		r = table_push_zeros(to, n);
		if (r == 0)
			r = table_finish(to);
		if (r == 0)
			merge_all(from, to, ends.items, ends.n);
	}
	if (r == 0)
		swap_tables(from, to);
	vec_deinit(&ends);
	return r;
}
