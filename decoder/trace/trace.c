/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/trace/trace.h"

#include <stdlib.h>

struct trace *trace_free(struct trace *trace)
{
	if (!trace)
		return NULL;

	for (size_t i = 0; i < trace->n_queues; i++) {
		free(trace->queues[i].spans);
		free(trace->queues[i].losses);
	}
	free(trace->queues);
	table_deinit(&trace->record_table);
	map_deinit(&trace->facts.scope);
	vec_deinit(&trace->programs);
	for (size_t i = 0; i < trace->files.n; i++)
		mapfile_deinit(&trace->files.items[i]);
	vec_deinit(&trace->files);
	free(trace);
	return NULL;
}

void trace_evict(const struct trace *trace, const uint8_t *bytes, size_t size)
{
	for (size_t i = 0; i < trace->files.n; i++)
		mapfile_evict(&trace->files.items[i], bytes, size);
}

void trace_evict_all(const struct trace *trace)
{
	for (size_t i = 0; i < trace->files.n; i++)
		mapfile_evict(&trace->files.items[i], trace->files.items[i].bytes,
			      trace->files.items[i].size);
	table_evict(&trace->record_table);
}
