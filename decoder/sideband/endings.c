/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/sideband/endings.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>

#include "util/perf/codec.h"

void endings_init(struct endings *endings, const struct trace *trace)
{
	*endings = (struct endings){ .trace = trace };
}

void endings_deinit(struct endings *endings)
{
	vec_deinit(&endings->list);
}

/* Return: whether the record begins a program in process @ret_pid. */
static bool begins_program(const struct trace_record *record, uint32_t *ret_pid)
{
	struct record_task task;
	struct record_comm comm;

	if (record->type == PERF_RECORD_FORK) {
		if (record_read_task(trace_record_body(record), &task) < 0)
			return false;
		*ret_pid = task.pid;
		return task.pid == task.tid && task.pid != task.ppid;
	}
	if (record->type != PERF_RECORD_COMM ||
	    record_read_comm(record->misc, trace_record_body(record), &comm) < 0)
		return false;
	*ret_pid = comm.pid;
	return comm.exec;
}

static int compare_endings(const void *pa, const void *pb)
{
	const struct ending *a = pa, *b = pb;

	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	return a->time < b->time ? -1 : a->time > b->time;
}

static int read_all(struct endings *endings)
{
	const struct trace *trace = endings->trace;
	uint32_t pid;

	for (size_t i = 0; i < trace->n_records; i++) {
		const struct trace_record *record = &trace->records[i];

		if (record->time > 0 && begins_program(record, &pid) &&
		    vec_push(&endings->list, { .pid = pid, .time = record->time }) < 0)
			return -ENOMEM;
		if (i % TRACE_EVICT_RECORDS == TRACE_EVICT_RECORDS - 1)
			trace_evict(trace);
	}
	if (endings->list.n > 0)
		qsort(endings->list.items, endings->list.n, sizeof(*endings->list.items),
		      compare_endings);
	endings->is_read = true;
	return 0;
}

int endings_find(struct endings *endings, uint32_t pid, uint64_t time, uint64_t *ret_end)
{
	size_t i;

	if (!endings->is_read && read_all(endings) < 0)
		return -ENOMEM;
	i = vec_bisect(&endings->list, ending,
		       ending->pid < pid || (ending->pid == pid && ending->time <= time));
	*ret_end = i < endings->list.n && endings->list.items[i].pid == pid
		       ? endings->list.items[i].time
		       : UINT64_MAX;
	return 0;
}
