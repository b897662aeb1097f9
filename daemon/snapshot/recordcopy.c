/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/snapshot/recordcopy.h"

#include <string.h>

#include "daemon/sideband/sideband.h"
#include "daemon/snapshot/cpucopy.h"
#include "daemon/snapshot/perffile.h"
#include "util/map.h"
#include "util/perf/codec.h"
#include "util/perf/record.h"
#include "util/vec.h"

void recordcopy_note_time(struct recordcopy *copy, uint64_t time)
{
	if (time == 0)
		return;
	if (copy->time_first == 0 || time < copy->time_first)
		copy->time_first = time;
	if (time > copy->time_last)
		copy->time_last = time;
}

int recordcopy_note_ran(struct map *pids, uint32_t pid, uint64_t time)
{
	uint64_t *last = map_get(pids, pid);

	if (!last)
		return map_put(pids, pid, time);
	*last = time > *last ? time : *last;
	return 0;
}

/* A child has the mappings of its parent, so the parents of those who ran matter too. */
static int add_parents(struct recordcopy *copy)
{
	VEC(struct record_task) forks = {};
	int r = 0;

	for (size_t i = 0; r == 0 && i < copy->tasks->n_spans; i++) {
		struct cursor c = copy->tasks->spans[i];
		struct record record;
		struct record_task fork;

		while (r == 0 && record_next(&c, &record) == 0) {
			if (record.header.type == PERF_RECORD_FORK &&
			    record_get_task(&record, &fork) == 0 && fork.pid != fork.ppid)
				r = vec_push(&forks, fork);
		}
	}
	/* Backwards, so that a grandparent is found through the parent. */
	for (size_t i = forks.n; r == 0 && i-- > 0;) {
		const uint64_t *ran = map_get(copy->pids, forks.items[i].pid);

		if (ran)
			r = recordcopy_note_ran(copy->pids, forks.items[i].ppid, *ran);
	}
	vec_deinit(&forks);
	return r;
}

/* Says who ran here when the oldest record that is left was written; the one that said so before
 * is gone. */
static void write_itrace_start(struct recordcopy *copy, uint32_t cpu, const struct record *oldest)
{
	const struct record_ids who = { oldest->trailer.pid, oldest->trailer.tid };
	struct trailer trailer = record_trailer(who.pid, who.tid, oldest->trailer.time);
	uint8_t record[RECORD_OWN_MAX];

	trailer.cpu = cpu;
	perffile_write(copy->file, record,
		       record_write_itrace_start(&who, &trailer, record, sizeof(record)));
}

/* Return: the pid that a task record is about; 0: it concerns all processes. */
static uint32_t task_of(const struct record *record)
{
	uint32_t pid;

	return record_read_pid(record->header.type, record->body, &pid) < 0 ? 0 : pid;
}

static void write_task(struct recordcopy *copy, const struct record *record)
{
	perffile_write(copy->file, record->bytes, record->header.size);
}

/* Write the records of tasks that ran, and of their parents. No others are needed. */
static void write_tasks(struct recordcopy *copy)
{
	for (size_t i = 0; i < copy->tasks->n_spans; i++) {
		struct cursor c = copy->tasks->spans[i];
		struct record record;

		while (record_next(&c, &record) == 0) {
			const uint32_t pid = task_of(&record);

			if (pid != 0 && !map_get(copy->pids, pid))
				continue;
			recordcopy_note_time(copy, record.trailer.time);
			write_task(copy, &record);
		}
	}
}

static void write_switches(struct recordcopy *copy)
{
	for (uint32_t i = 0; i < copy->n_cpus; i++) {
		const struct cpucopy *cpu = &copy->cpus[i];
		struct cursor c = cpucopy_records(cpu);
		struct record oldest;

		if (cpu->switches_cut && record_next(&c, &oldest) == 0)
			write_itrace_start(copy, i, &oldest);
		c = cpucopy_records(cpu);
		perffile_write(copy->file, c.pos, cursor_left(&c));
	}
}

/* Write the events of those who ran, as the kernel's tracepoints of the same names would. */
static void write_events(struct recordcopy *copy)
{
	uint8_t bytes[RECORD_OWN_MAX];

	for (uint32_t i = 0; i < copy->n_cpus; i++) {
		const struct cpucopy *cpu = &copy->cpus[i];

		for (size_t k = 0; k < cpu->n_events; k++) {
			const struct source_event *e = &cpu->events[k];
			struct trailer who = record_trailer(e->pid, e->tid, e->time);
			size_t size;

			if (!map_get(copy->pids, e->pid))
				continue;
			who.cpu = i;
			if (e->kind == SOURCE_EVENT_SYSCALL)
				size =
				    record_write_sys_enter(e->number, &who, bytes, sizeof(bytes));
			else
				size = record_write_signal_deliver(e->number, e->handler, &who,
								   bytes, sizeof(bytes));
			perffile_write(copy->file, bytes, size);
		}
	}
}

int recordcopy_write(struct recordcopy *copy)
{
	const int r = add_parents(copy);

	if (r < 0)
		return r;
	write_tasks(copy);
	write_switches(copy);
	write_events(copy);
	return 0;
}
