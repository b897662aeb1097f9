/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A whole perf.data of any bytes, and the timeline that comes of it. */

#include <stdint.h>
#include <stdlib.h>

#include "decoder/file/perfdata.h"
#include "decoder/sideband/timeline.h"
#include "tests/lib/perfbytes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ask(const struct trace *trace, const struct timeline *timeline)
{
	struct stay stay;

	for (size_t i = 0; i < trace->n_records; i++) {
		const struct trace_record *r = &trace->records[i];

		if (i > 0 && trace->records[i - 1].time > r->time)
			abort();
		timeline_at(timeline, r->cpu, r->time, &stay);
		if (stay.start > r->time || (stay.end <= r->time && stay.end != UINT64_MAX))
			abort();
		timeline_at_tid(timeline, r->tid, r->time, &stay);
		if (stay.start > r->time || (stay.end <= r->time && stay.end != UINT64_MAX))
			abort();
	}
}

/* Every byte of a span can be read. */
static void touch(const struct trace *trace)
{
	for (size_t i = 0; i < trace->n_queues; i++) {
		for (size_t j = 0; j < trace->queues[i].n_spans; j++) {
			_cleanup_(freep) uint8_t *pt = perfbytes_span(&trace->queues[i].spans[j]);

			if (!pt)
				abort();
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct timeline *timeline = NULL;
	struct objects *objects = NULL;
	struct trace *trace = NULL;
	char *message = NULL;
	uint64_t tsc;

	if (perfbytes_parse(data, size, "FILE", &trace, &message) < 0) {
		if (!message || trace)
			abort();
		free(message);
		return 0;
	}

	touch(trace);
	if (trace->facts.clock.valid) {
		tsc = tsc_from_ns(&trace->facts.clock, size);
		(void)tsc_to_ns(&trace->facts.clock, tsc);
	}
	if (objects_new(NULL, &objects) < 0 || timeline_new(trace, objects, &timeline) < 0)
		abort();
	ask(trace, timeline);

	timeline_free(timeline);
	objects_free(objects);
	trace_free(trace);
	return 0;
}
