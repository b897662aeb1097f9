/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * auxbytes INPUT CPU: the PT bytes of that CPU in a snapshot or perf.data, to stdout, the oldest
 * first. On stderr: in how many pieces they were.
 */

#include <errno.h>
#include <error.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/base.h"
#include "decoder/file/input.h"
#include "tests/lib/perfbytes.h"

static void write_span(const struct trace_span *span)
{
	_cleanup_(freep) uint8_t *pt = perfbytes_span(span);

	if (!pt)
		error(1, errno, "cannot read");
	if (fwrite(pt, 1, span->pt.size, stdout) != span->pt.size)
		error(1, errno, "cannot write");
}

int main(int argc, char **argv)
{
	_cleanup_(trace_freep) struct trace *trace = NULL;
	_cleanup_(freep) char *message = NULL;
	size_t n = 0;
	uint32_t cpu;

	if (argc != 3)
		error(2, 0, "usage: auxbytes INPUT CPU");
	cpu = (uint32_t)strtoul(argv[2], NULL, 10);
	if (input_open(argv[1], false, NULL, &trace, &message) < 0)
		error(1, 0, "%s", message ? message : argv[1]);
	for (size_t q = 0; q < trace->n_queues; q++) {
		const struct trace_queue *queue = &trace->queues[q];

		if (queue->cpu != cpu)
			continue;
		for (size_t i = 0; i < queue->n_spans; i++, n++)
			write_span(&queue->spans[i]);
	}
	fprintf(stderr, "%zu pieces\n", n);
	return fflush(stdout) == 0 ? 0 : 1;
}
