/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/snapshot/snapdata.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/utsname.h>

#include "daemon/snapshot/perffile.h"
#include "daemon/snapshot/ringcopy.h"
#include "daemon/source/ptclock.h"
#include "daemon/tasks/sideband.h"
#include "ptd/snapshot.h"
#include "record/record.h"
#include "util/dirs.h"
#include "util/vec.h"

int snapdata_init(struct snapdata *data, const struct snapshot_request *request, int dir_fd)
{
	struct source *source = request->source;

	*data = (struct snapdata){ .request = request, .dir_fd = dir_fd };
	data->cpus = calloc(source->n_cpus, sizeof(*data->cpus));
	return data->cpus ? 0 : -ENOMEM;
}

void snapdata_deinit(struct snapdata *data)
{
	for (uint32_t i = 0; data->cpus && i < data->request->source->n_cpus; i++)
		cpucopy_deinit(&data->cpus[i]);
	free(data->cpus);
	(void)perffile_free(data->file);
	(void)ptclock_log_free(data->clock);
	map_deinit(&data->pids);
	map_deinit(&data->only);
	map_deinit(&data->ran);
	*data = (struct snapdata){};
}

static void stretch(struct snapdata *d, uint64_t time)
{
	if (time == 0)
		return;
	if (d->time_first == 0 || time < d->time_first)
		d->time_first = time;
	if (time > d->time_last)
		d->time_last = time;
}

/* --- the rings ------------------------------------------------------------------------------- */

static int note_switches(struct snapdata *d, const struct cpucopy *cpu)
{
	struct cursor c = cpucopy_records(cpu);
	struct record record;
	int r = 0;

	if (d->request->scope.pid)
		r = scope_add_ran(&d->only, c, &d->ran);
	if (r < 0)
		return r;
	while (record_next(&c, &record) == 0) {
		stretch(d, record.trailer.time);
		if (d->request->scope.pid && !map_get(&d->only, record.trailer.pid))
			continue;
		r = map_put(&d->pids, record.trailer.pid, 1);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Whose PT is asked for. Once the rings are copied, so that whoever was forked before the freeze
 * has been told of. */
static int find_scope(struct snapdata *d)
{
	_cleanup_(fd_closep) int proc_fd = -1;
	const struct snapshot_request *q = d->request;
	int r;

	if (q->scope.pid == 0)
		return 0;
	proc_fd = dirs_open(AT_FDCWD, "/proc");
	if (proc_fd < 0)
		return proc_fd;
	r = q->gather(q->userdata, &d->known);
	return r < 0 ? r : scope_pids(&q->scope, d->known.tasks, proc_fd, &d->only);
}

/* Did somebody run there who is asked for? If not, forget what was copied. */
static bool is_in_scope(struct snapdata *d, uint32_t cpu)
{
	if (d->request->scope.pid == 0 || scope_ran(&d->only, cpucopy_records(&d->cpus[cpu])))
		return true;
	cpucopy_deinit(&d->cpus[cpu]);
	return false;
}

/* A moment on the records' clock as a TSC. Never 0. */
static uint64_t tsc_at(const struct source_facts *facts, uint64_t ns)
{
	const uint64_t tsc = tsc_from_ns(&facts->tsc, ns);

	return tsc ? tsc : 1;
}

/* What is known of a ring's beginning: where it was overwritten, the snapshot is not whole. */
static void note_oldest(struct snapdata *d, struct cpucopy *cpu)
{
	uint64_t since;

	cpucopy_find_oldest(cpu, &d->facts, d->moment.ns);
	d->bytes_dropped += cpu->pt_dropped;
	d->bytes_overwritten += cpu->pt_overwritten;
	if (cpu->pt_overwritten == 0)
		return;
	/* Without a PSB nothing of it can be decoded. */
	since = cpu->pt_oldest ? cpu->pt_oldest : d->moment.ns;
	if (since > d->complete_since)
		d->complete_since = since;
}

static int write_pt(struct snapdata *d, uint32_t i)
{
	struct cpucopy *cpu = &d->cpus[i];
	int r = 0;

	note_oldest(d, cpu);
	if (cpu->pt && cpu->pt_bytes > 0) {
		d->bytes_pt += cpu->pt_bytes;
		d->n_cpus++;
		r = perffile_write_aux(d->file, i, cpu->pt_head - cpu->pt_bytes,
				       tsc_at(&d->facts, d->moment.ns), cpu->pt + cpu->pt_start,
				       cpu->pt_bytes);
	}
	cpucopy_forget_pt(cpu);
	return r;
}

static void release(struct source *source, bool *held)
{
	if (*held)
		source->ops->release(source);
	*held = false;
}

/* What goes with the rings: if the machine is suspended after their release, it changes. */
static int copy_facts(struct snapdata *d)
{
	struct source *source = d->request->source;

	d->facts = source->facts;
	return source->clock ? ptclock_log_copy(source->clock, &d->clock) : 0;
}

/* Held, copied, and written only then: the rings' writers go on. */
static int write_rings(struct snapdata *d)
{
	struct source *source = d->request->source;
	struct ringcopy rings = {
		.source = source,
		.cpus = d->cpus,
		.scope = &d->request->scope,
		.cancel = d->request->cancel,
	};
	bool held = true;
	uint32_t end = 0;
	int r;

	ringcopy_prepare(&rings);
	r = source->ops->hold(source, &d->moment);
	if (r < 0)
		return r;
	for (uint32_t first = 0; r == 0 && first < source->n_cpus; first = end) {
		r = ringcopy_some(&rings, first, &end);
		if (r == 0 && first == 0)
			r = copy_facts(d);
		if (end == source->n_cpus)
			release(source, &held);
		if (r == 0 && first == 0)
			r = perffile_new(d->dir_fd, PTD_SNAPSHOT_DATA, &d->facts, &d->file);
		if (r == 0 && first == 0)
			r = find_scope(d);
		for (uint32_t i = first; r == 0 && i < end; i++) {
			if (is_in_scope(d, i))
				r = note_switches(d, &d->cpus[i]);
			if (r == 0)
				r = write_pt(d, i);
		}
	}
	release(source, &held);
	return r;
}

int snapdata_write_rings(struct snapdata *data)
{
	const int r = write_rings(data);

	return r == 0 && data->request->scope.pid && data->pids.n_used == 0 ? -ESRCH : r;
}

/* --- the records ----------------------------------------------------------------------------- */

/* A child has the mappings of its parent, so the parents of those who ran matter too. */
static int add_parents(struct snapdata *d)
{
	VEC(struct record_task) forks = {};
	int r = 0;

	for (size_t i = 0; r == 0 && i < d->known.tasks->n_spans; i++) {
		struct cursor c = d->known.tasks->spans[i];
		struct record record;
		struct record_task fork;

		while (r == 0 && record_next(&c, &record) == 0) {
			if (record.header.type == PERF_RECORD_FORK &&
			    record_get_task(&record, &fork) == 0 && fork.pid != fork.ppid)
				r = vec_push(&forks, fork);
		}
	}
	/* Backwards, so that a grandparent is found through the parent. */
	for (size_t i = forks.n; r == 0 && i-- > 0;)
		if (map_get(&d->pids, forks.items[i].pid))
			r = map_put(&d->pids, forks.items[i].ppid, 1);
	vec_deinit(&forks);
	return r;
}

/* Says who ran here when the oldest record that is left was written; the one that said so before
 * is gone. */
static void write_itrace_start(struct snapdata *d, uint32_t cpu, const struct record *oldest)
{
	const struct record_ids who = { oldest->trailer.pid, oldest->trailer.tid };
	struct trailer trailer = record_trailer(who.pid, who.tid, oldest->trailer.time);
	uint8_t record[RECORD_OWN_MAX];

	trailer.cpu = cpu;
	perffile_write(d->file, record,
		       record_write_itrace_start(&who, &trailer, record, sizeof(record)));
}

/* Whom a task record tells of; 0: everybody. */
static uint32_t task_of(const struct record *record)
{
	struct record_mmap2 mmap;
	struct record_task task;
	struct record_comm comm;

	switch (record->header.type) {
	case PERF_RECORD_COMM:
		return record_read_comm(record->header.misc, record->body, &comm) < 0 ? 0
										      : comm.pid;
	case PERF_RECORD_MMAP2:
		return record_get_mmap2(record, &mmap) < 0 ? 0 : mmap.pid;
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		return record_get_task(record, &task) < 0 ? 0 : task.pid;
	default:
		return 0;
	}
}

/* Those of tasks that ran, and of their parents; the others are nobody's. */
static void write_tasks(struct snapdata *d)
{
	for (size_t i = 0; i < d->known.tasks->n_spans; i++) {
		struct cursor c = d->known.tasks->spans[i];
		struct record record;

		while (record_next(&c, &record) == 0) {
			const uint32_t pid = task_of(&record);

			if (pid != 0 && !map_get(&d->pids, pid))
				continue;
			stretch(d, record.trailer.time);
			perffile_write(d->file, record.bytes, record.header.size);
		}
	}
}

static void write_switches(struct snapdata *d)
{
	for (uint32_t i = 0; i < d->request->source->n_cpus; i++) {
		const struct cpucopy *cpu = &d->cpus[i];
		struct cursor c = cpucopy_records(cpu);
		struct record oldest;

		if (cpu->switches_cut && record_next(&c, &oldest) == 0)
			write_itrace_start(d, i, &oldest);
		c = cpucopy_records(cpu);
		perffile_write(d->file, c.pos, cursor_left(&c));
	}
}

int snapdata_write_records(struct snapdata *data)
{
	int r;

	r = data->request->gather(data->request->userdata, &data->known);
	if (r == 0)
		r = add_parents(data);
	if (r < 0)
		return r;
	write_tasks(data);
	write_switches(data);
	return 0;
}

void snapdata_print_clock(const struct snapdata *data, FILE *f)
{
	if (data->clock)
		ptclock_log_print(data->clock,
				  data->time_first ? tsc_at(&data->facts, data->time_first) : 0, f);
}

int snapdata_finish(struct snapdata *data, const struct perffile_object *objects, size_t n_objects)
{
	const struct source *source = data->request->source;
	const struct perffile_about *about;
	struct utsname host;

	if (uname(&host) < 0)
		return -errno;
	about = &(struct perffile_about){
		.host = host.nodename,
		.release = host.release,
		.machine = host.machine,
		.version = PTD_VERSION,
		.cpuid = data->facts.cpuid,
		.n_cpus = source->n_cpus,
		.time_first = data->time_first,
		.time_last = data->time_last,
		.objects = objects,
		.n_objects = n_objects,
	};
	return perffile_finish(data->file, about);
}
