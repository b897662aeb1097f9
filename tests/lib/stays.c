/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "tests/lib/stays.h"

#include <linux/perf_event.h>
#include <stdio.h>

#include "decoder/file/input.h"

/* The order of records of one time is that of the file, in which they were written. */
static int by_cpu(const void *a, const void *b)
{
	const struct stay_begin *x = a, *y = b;

	if (x->cpu != y->cpu)
		return x->cpu < y->cpu ? -1 : 1;
	return x->time < y->time ? -1 : x->time > y->time;
}

int stays_init(struct stays *stays, const char *path, bool force)
{
	struct trace *trace;
	char *message;
	int r;

	*stays = (struct stays){};
	r = input_open(path, force, NULL, &trace, &message);
	if (r < 0) {
		fprintf(stderr, "%s\n", message);
		free(message);
		return r;
	}
	for (size_t i = 0; i < trace->n_records && r == 0; i++) {
		const struct trace_record *record = &trace->records[i];

		if (((record->type == PERF_RECORD_SWITCH_CPU_WIDE ||
		      record->type == PERF_RECORD_SWITCH) &&
		     !(record->misc & PERF_RECORD_MISC_SWITCH_OUT)) ||
		    record->type == PERF_RECORD_ITRACE_START)
			r = vec_push(&stays->list,
				     { record->time, record->cpu, record->pid, record->tid });
	}
	trace_free(trace);
	if (r == 0 && stays->list.n > 0)
		qsort(stays->list.items, stays->list.n, sizeof(*stays->list.items), by_cpu);
	return r;
}

void stays_deinit(struct stays *stays)
{
	vec_deinit(&stays->list);
}

uint64_t stays_end(const struct stays *stays, uint32_t cpu, uint32_t pid, uint32_t tid,
		   uint64_t time)
{
	const struct stay_begin *items = stays->list.items;
	/* The first that begins later. */
	size_t low = vec_bisect(&stays->list, stay,
				stay->cpu < cpu || (stay->cpu == cpu && stay->time <= time));

	if (low > 0 && items[low - 1].cpu == cpu &&
	    (items[low - 1].pid != pid || items[low - 1].tid != tid))
		return 0;
	while (low < stays->list.n && items[low].cpu == cpu && items[low].pid == pid &&
	       items[low].tid == tid)
		low++;
	return low < stays->list.n && items[low].cpu == cpu ? items[low].time : UINT64_MAX;
}

size_t stays_begun(const struct stays *stays, uint32_t pid, uint32_t tid, uint64_t from,
		   uint64_t to)
{
	size_t n = 0;

	for (size_t i = 0; i < stays->list.n; i++) {
		const struct stay_begin *s = &stays->list.items[i];

		n += s->pid == pid && s->tid == tid && s->time > from && s->time <= to;
	}
	return n;
}
