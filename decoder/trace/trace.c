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
	table_deinit(&trace->payloads);
	map_deinit(&trace->facts.scope);
	vec_deinit(&trace->programs);
	for (size_t i = 0; i < trace->bytes.n; i++)
		free(trace->bytes.items[i]);
	vec_deinit(&trace->bytes);
	for (size_t i = 0; i < trace->fds.n; i++)
		(void)fd_close(trace->fds.items[i]);
	vec_deinit(&trace->fds);
	free(trace->parts);
	free(trace);
	return NULL;
}

void trace_evict(const struct trace *trace)
{
	table_evict(&trace->record_table);
	table_evict(&trace->payloads);
}
