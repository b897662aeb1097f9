/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/sideband/timeline.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>

#include "base/cursor.h"
#include "decoder/sideband/task.h"
#include "decoder/sideband/track.h"
#include "ptd/record.h"
#include "util/map.h"
#include "util/perf/codec.h"
#include "util/vec.h"

#define CPUS_MAX 8192 /* Linux has no more on x86; records of others are skipped */

/* Who runs on a CPU now. */
struct cpu {
	bool placed;        /* a record has said who runs */
	uint64_t placed_at; /* when the last stay began */
	uint64_t heard_at;  /* time of the last record that was made on this CPU */
	uint32_t came;      /* the tid that came last, by a sample; PTD_ID_UNKNOWN: none */
	uint32_t pid;
	uint32_t tid;
	const struct space *space;
};

struct timeline {
	struct tasks tasks;
	VEC(struct cpu) cpus;
	struct map by_cpu;   /* number → index into cpus, which is its owner number in stays */
	struct tracks stays; /* by cpu */
	bool switches_apart; /* LOST records are not about switch records */
	bool samples_linked; /* the samples of each CPU state all who ran there */
	struct space *bare;  /* the only space, of a bare PT stream; else NULL */
	size_t n_skipped;
};

/* Find or add a CPU. Return: 0; TASKS_SKIPPED if there are too many CPUs; -ENOMEM. */
static int get_cpu(struct timeline *tl, uint32_t number, uint32_t *ret_index)
{
	const struct cpu *cpu;

	if (tl->cpus.n == CPUS_MAX && !map_get(&tl->by_cpu, number))
		return TASKS_SKIPPED;
	cpu = map_item(&tl->by_cpu, number, &tl->cpus, { .came = PTD_ID_UNKNOWN });
	if (!cpu)
		return -ENOMEM;
	*ret_index = (uint32_t)(cpu - tl->cpus.items);
	return 0;
}

/* From @time on, @tid runs on the CPU. */
static int place(struct timeline *tl, uint32_t index, uint32_t pid, uint32_t tid, uint64_t time)
{
	struct track_item item = { .start = time, .owner = index, .pid = pid, .tid = tid };
	struct cpu *cpu = &tl->cpus.items[index];
	struct thread *before = cpu->placed ? tasks_find(&tl->tasks, cpu->pid, cpu->tid) : NULL;
	struct thread *thread = NULL;
	int r;

	if (before)
		before->since = time;
	r = tasks_thread(&tl->tasks, pid, tid, time, &thread);
	if (r < 0)
		return r;
	item.space = tl->tasks.kernel.space; /* of the idle thread, or of an unknown one */
	if (thread) {
		thread->since = time;
		item.space = thread->space;
	}
	item.comm = thread ? thread->comm : "";

	if (cpu->placed && cpu->pid == pid && cpu->tid == tid && cpu->space == item.space)
		return 0;
	cpu->placed = true;
	cpu->placed_at = time;
	cpu->pid = pid;
	cpu->tid = tid;
	cpu->space = item.space;
	return tracks_add(&tl->stays, &item);
}

/* From @time on, it is not known who runs on the CPU. */
static int place_nobody(struct timeline *tl, uint32_t index, uint64_t time)
{
	struct cpu *cpu = &tl->cpus.items[index];

	cpu->placed = true;
	cpu->placed_at = time;
	cpu->pid = cpu->tid = cpu->came = PTD_ID_UNKNOWN;
	cpu->space = NULL;
	return tracks_add(&tl->stays, &(struct track_item){ .start = time,
							    .owner = index,
							    .pid = PTD_ID_UNKNOWN,
							    .tid = PTD_ID_UNKNOWN,
							    .comm = "" });
}

/*
 * A record may have given process @pid another space: the stays of its threads that run end, and
 * others begin.
 */
static int place_again(struct timeline *tl, uint32_t pid, uint64_t time)
{
	const struct space *space = tasks_space(&tl->tasks, pid);

	for (uint32_t i = 0; i < tl->cpus.n; i++) {
		const struct cpu *cpu = &tl->cpus.items[i];
		int r;

		if (!cpu->placed || cpu->pid != pid || cpu->space == space)
			continue;
		r = place(tl, i, pid, cpu->tid, time);
		if (r < 0)
			return r;
	}
	return 0;
}

/*
 * The first record of a CPU proves that @tid ran there until @time: since ever, or since it was
 * seen elsewhere.
 */
static int place_before(struct timeline *tl, uint32_t index, uint32_t pid, uint32_t tid,
			uint64_t time)
{
	struct thread *thread = NULL;
	int r;

	if (tl->cpus.items[index].placed || pid == PTD_ID_UNKNOWN || tid == PTD_ID_UNKNOWN)
		return 0;
	r = tasks_thread(&tl->tasks, pid, tid, time, &thread);
	if (r < 0)
		return r;
	if (thread && thread->since >= time)
		return 0;
	return place(tl, index, pid, tid, thread ? thread->since : 0);
}

/* Records. */

static int on_switch(struct timeline *tl, const struct trace_record *record)
{
	struct record_switch sw;
	uint32_t index;
	int r;

	if (record->cpu == TRACE_NONE ||
	    record_read_switch(record->type, record->misc, trace_record_body(record), &sw) < 0)
		return TASKS_SKIPPED;
	r = get_cpu(tl, record->cpu, &index);
	if (r != 0)
		return r;

	/* The trailer names the task that leaves or comes; the payload, if there is one, the other
	 * one. */
	if (record->type != PERF_RECORD_SWITCH_CPU_WIDE)
		sw.other = (struct record_ids){ .pid = PTD_ID_UNKNOWN, .tid = PTD_ID_UNKNOWN };
	if (sw.out) {
		r = place_before(tl, index, record->pid, record->tid, record->time);
		return r < 0 ? r : place(tl, index, sw.other.pid, sw.other.tid, record->time);
	}
	r = place_before(tl, index, sw.other.pid, sw.other.tid, record->time);
	return r < 0 ? r : place(tl, index, record->pid, record->tid, record->time);
}

static int on_itrace_start(struct timeline *tl, const struct trace_record *record)
{
	struct record_ids who;
	uint32_t index;
	int r;

	if (record->cpu == TRACE_NONE ||
	    record_read_itrace_start(trace_record_body(record), &who) < 0)
		return TASKS_SKIPPED;
	r = get_cpu(tl, record->cpu, &index);
	if (r != 0)
		return r;
	tl->cpus.items[index].came = PTD_ID_UNKNOWN;
	return place(tl, index, who.pid, who.tid, record->time);
}

/*
 * The trailer's thread leaves. Only the number of who comes is told: if its process is not known,
 * that is as good as nothing until it leaves.
 */
static int on_sample(struct timeline *tl, const struct trace_record *record)
{
	struct cursor c = trace_record_body(record);
	uint32_t next, pid, index;
	struct cpu *cpu;
	int r;

	if (record->cpu == TRACE_NONE || cursor_get(&c, sizeof(next), &next) < 0)
		return TASKS_SKIPPED;
	r = get_cpu(tl, record->cpu, &index);
	if (r != 0)
		return r;

	cpu = &tl->cpus.items[index];
	if (!cpu->placed)
		r = place_before(tl, index, record->pid, record->tid, record->time);
	else if (record->tid != PTD_ID_UNKNOWN && cpu->tid == PTD_ID_UNKNOWN &&
		 cpu->came == record->tid)
		r = place(tl, index, record->pid, record->tid, cpu->placed_at);
	else if (record->tid != PTD_ID_UNKNOWN && cpu->tid != PTD_ID_UNKNOWN &&
		 cpu->tid != record->tid)
		r = place_nobody(tl, index, cpu->placed_at);
	if (r < 0)
		return r;

	pid = tasks_pid_of(&tl->tasks, next);
	r = place(tl, index, pid, pid == PTD_ID_UNKNOWN ? PTD_ID_UNKNOWN : next, record->time);
	cpu->came = next;
	cpu->placed_at = record->time;
	return r;
}

/*
 * An exec changes the space of a thread that runs, so that its stay ends and another begins, on the
 * CPU that the record was made on. Its tid is that of its process from now on, whose EXIT stands
 * before, if it was another thread (findings/perf-thread-that-execs.sh).
 */
static int on_exec(struct timeline *tl, const struct trace_record *record)
{
	uint32_t pid, index;
	int r;

	if (record_read_pid(record->type, trace_record_body(record), &pid) < 0)
		return TASKS_SKIPPED;
	/* The record does not state that the process ran on the CPU of the record. */
	if (record->time == 0 || record->cpu == TRACE_NONE || record->pid != pid) {
		r = tasks_comm(&tl->tasks, record);
		return r != 0 ? r : place_again(tl, pid, record->time);
	}

	r = get_cpu(tl, record->cpu, &index);
	if (r != 0)
		return r;
	r = place_before(tl, index, pid, pid, record->time);
	if (r < 0)
		return r;
	r = tasks_comm(&tl->tasks, record);
	if (r != 0)
		return r;

	if (tl->cpus.items[index].placed && tl->cpus.items[index].pid == pid) {
		r = place(tl, index, pid, pid, record->time);
		if (r < 0)
			return r;
	}
	return place_again(tl, pid, record->time);
}

/*
 * Apply a record that begins with a pid. A process that runs already is neither forked nor begun by
 * a mapping, but broken records may say so.
 */
static int on_task(struct timeline *tl, const struct trace_record *record,
		   int (*apply)(struct tasks *tasks, const struct trace_record *record))
{
	const struct space *before;
	uint32_t pid;
	int r, placed;

	if (record_read_pid(record->type, trace_record_body(record), &pid) < 0)
		return TASKS_SKIPPED;
	before = tasks_space(&tl->tasks, pid);
	r = apply(&tl->tasks, record);
	if (r < 0 || tasks_space(&tl->tasks, pid) == before)
		return r;
	placed = place_again(tl, pid, record->time);
	return placed < 0 ? placed : r;
}

/*
 * Records of a CPU were lost between the last one before this and this one: the thread that ran may
 * have left, and others have come and gone.
 */
static int on_lost(struct timeline *tl, const struct trace_record *record)
{
	uint32_t index;
	struct cpu *cpu;
	uint64_t since;
	int r;

	if (tl->switches_apart || record->cpu == TRACE_NONE)
		return 0;
	r = get_cpu(tl, record->cpu, &index);
	if (r != 0)
		return r;
	cpu = &tl->cpus.items[index];
	cpu->came = PTD_ID_UNKNOWN;
	if (cpu->placed && cpu->tid == PTD_ID_UNKNOWN)
		return 0;
	since = cpu->heard_at > cpu->placed_at ? cpu->heard_at : cpu->placed_at;
	/* What the last record states held at least at its own time. */
	if (cpu->placed)
		since = since < record->time ? since + 1 : record->time;
	return place_nobody(tl, index, since);
}

/* Note that @record was made. */
static int hear(struct timeline *tl, const struct trace_record *record)
{
	uint32_t index;
	int r;

	if (record->cpu == TRACE_NONE || record->time == 0)
		return 0;
	r = get_cpu(tl, record->cpu, &index);
	if (r == 0)
		tl->cpus.items[index].heard_at = record->time;
	return r < 0 ? r : 0;
}

static int on_record(struct timeline *tl, const struct trace_record *record)
{
	switch (record->type) {
	case PERF_RECORD_SWITCH_CPU_WIDE:
	case PERF_RECORD_SWITCH:
		return on_switch(tl, record);
	case PERF_RECORD_SAMPLE:
		return on_sample(tl, record);
	case PERF_RECORD_ITRACE_START:
		return on_itrace_start(tl, record);
	case PERF_RECORD_COMM:
		if (record->misc & PERF_RECORD_MISC_COMM_EXEC)
			return on_exec(tl, record);
		return on_task(tl, record, tasks_comm);
	case PERF_RECORD_FORK:
		return on_task(tl, record, tasks_fork);
	case PERF_RECORD_EXIT:
		return tasks_exit(&tl->tasks, record);
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		return on_task(tl, record, tasks_map);
	case PERF_RECORD_LOST:
		return on_lost(tl, record);
	default:
		return 0;
	}
}

/* The timeline. */

/*
 * Find out whether each sample of sched_switch names as leaving the thread that came with the
 * sample before it on the same CPU.
 */
static int look_at_samples(struct timeline *tl, const struct trace *trace)
{
	struct map came = {}; /* CPU → tid */
	int r = 0;

	tl->samples_linked = true;
	for (size_t i = 0; r == 0 && trace->n_switch_samples > 0 && i < trace->n_records; i++) {
		const struct trace_record *record = &trace->records[i];
		const uint64_t *before = map_get(&came, record->cpu);
		struct cursor c = cursor_from(record->payload, record->payload_size);
		uint32_t next = PTD_ID_UNKNOWN;

		if (record->type == PERF_RECORD_SAMPLE) {
			if (before && *before != record->tid && *before != PTD_ID_UNKNOWN &&
			    record->tid != PTD_ID_UNKNOWN)
				tl->samples_linked = false;
			(void)!cursor_get(&c, sizeof(next), &next);
			r = map_put(&came, record->cpu, next);
		} else if (record->type == PERF_RECORD_LOST ||
			   (record->type == PERF_RECORD_COMM &&
			    record->misc & PERF_RECORD_MISC_COMM_EXEC)) {
			/* An exec may give the thread another number. */
			r = map_put(&came, record->cpu, PTD_ID_UNKNOWN);
		}
		if (i % TRACE_EVICT_RECORDS == 0)
			trace_evict(trace);
	}
	map_deinit(&came);
	return r;
}

/* If not, no later sample proves that the thread that came last on a CPU stayed there. */
static int end_samples(struct timeline *tl)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && !tl->samples_linked && i < tl->cpus.n; i++) {
		const struct cpu *cpu = &tl->cpus.items[i];

		if (cpu->came != PTD_ID_UNKNOWN && cpu->tid != PTD_ID_UNKNOWN)
			r = place_nobody(tl, i, cpu->placed_at);
	}
	return r;
}

int timeline_new(const struct trace *trace, struct objects *objects, struct timeline **ret_timeline)
{
	_cleanup_(timeline_freep) struct timeline *tl = calloc(1, sizeof(*tl));
	int r;

	if (!tl)
		return -ENOMEM;
	tracks_init(&tl->stays, trace->spills);
	tl->switches_apart = trace->facts.switches_apart;
	r = tasks_init(&tl->tasks, trace, objects);
	if (r == 0)
		r = look_at_samples(tl, trace);
	if (r < 0)
		return r;
	tl->n_skipped = tl->tasks.kernel.changes.n_skipped;

	for (size_t i = 0; i < trace->n_records; i++) {
		r = jits_apply(&tl->tasks.jits, trace->records[i].time);
		if (r < 0)
			return r;
		r = on_record(tl, &trace->records[i]);
		if (r < 0)
			return r;
		tl->n_skipped += r == TASKS_SKIPPED;
		if (i % TRACE_EVICT_RECORDS == 0)
			trace_evict(trace);
		r = hear(tl, &trace->records[i]);
		if (r < 0)
			return r;
	}
	r = jits_apply(&tl->tasks.jits, UINT64_MAX);
	if (r == 0)
		r = tasks_finish(&tl->tasks);
	if (r == 0)
		r = end_samples(tl);
	if (r < 0)
		return r;

	trace_evict(trace);
	r = tracks_finish(&tl->stays, tl->cpus.n);
	if (r < 0)
		return r;
	r = tracks_finish(&tl->tasks.lives, tl->tasks.threads.n);
	if (r < 0)
		return r;

	*ret_timeline = TAKE(tl);
	return 0;
}

int timeline_new_bare(struct space *space, struct timeline **ret_timeline)
{
	struct timeline *tl = calloc(1, sizeof(*tl));

	if (!tl) {
		space_free(space);
		return -ENOMEM;
	}
	tracks_init(&tl->stays, NULL);
	tracks_init(&tl->tasks.lives, NULL);
	tl->bare = space;
	*ret_timeline = tl;
	return 0;
}

struct timeline *timeline_free(struct timeline *timeline)
{
	if (!timeline)
		return NULL;

	tasks_deinit(&timeline->tasks);
	vec_deinit(&timeline->cpus);
	map_deinit(&timeline->by_cpu);
	tracks_deinit(&timeline->stays);
	space_free(timeline->bare);
	free(timeline);
	return NULL;
}

void timeline_at(const struct timeline *timeline, uint32_t cpu, uint64_t time,
		 struct stay *ret_stay)
{
	const uint64_t *owner = map_get(&timeline->by_cpu, cpu);

	tracks_find(&timeline->stays, owner ? *owner : SIZE_MAX, time, ret_stay);
	if (timeline->bare)
		ret_stay->space = timeline->bare;
}

void timeline_at_tid(const struct timeline *timeline, uint32_t tid, uint64_t time,
		     struct stay *ret_stay)
{
	const uint64_t *owner = map_get(&timeline->tasks.by_tid, tid);

	tracks_find(&timeline->tasks.lives, owner ? *owner : SIZE_MAX, time, ret_stay);
}

const struct space *timeline_space(const struct timeline *timeline, uint32_t id)
{
	const struct tasks *tasks = &timeline->tasks;

	if (timeline->bare)
		return space_id(timeline->bare) == id ? timeline->bare : NULL;
	if (tasks->kernel.space && space_id(tasks->kernel.space) == id)
		return tasks->kernel.space;
	/* Their numbers are their places. */
	return id < tasks->spaces.n ? tasks->spaces.items[id] : NULL;
}

const struct space *timeline_last_space(const struct timeline *timeline, uint32_t pid)
{
	return tasks_space(&timeline->tasks, pid);
}

const struct space *timeline_kernel(const struct timeline *timeline)
{
	return timeline->tasks.kernel.space;
}

bool timeline_lacks_kernel(const struct timeline *timeline, uint64_t ip)
{
	return kernel_lacks(&timeline->tasks.kernel, ip);
}

size_t timeline_n_skipped(const struct timeline *timeline)
{
	return timeline->n_skipped;
}

const char *const *timeline_complaints(const struct timeline *timeline, size_t *ret_n)
{
	*ret_n = timeline->tasks.jits.complaints.n;
	return (const char *const *)timeline->tasks.jits.complaints.items;
}
