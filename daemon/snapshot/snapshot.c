/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/snapshot/snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>

#include "daemon/objects/jitfile.h"
#include "daemon/objects/object.h"
#include "daemon/objects/objectstore.h"
#include "daemon/proc/caller.h"
#include "daemon/proc/cgroup.h"
#include "daemon/sideband/sideband.h"
#include "daemon/snapshot/bundle.h"
#include "daemon/snapshot/cpucopy.h"
#include "daemon/snapshot/kernelfiles.h"
#include "daemon/snapshot/livecode.h"
#include "daemon/snapshot/perffile.h"
#include "daemon/snapshot/ringcopy.h"
#include "daemon/snapshot/selection.h"
#include "daemon/snapshot/userparts.h"
#include "daemon/source/ptclock.h"
#include "daemon/source/source.h"
#include "daemon/spool/storedir.h"
#include "ptd/snapshot.h"
#include "util/cancel.h"
#include "util/dirs.h"
#include "util/effort.h"
#include "util/map.h"
#include "util/perf/codec.h"
#include "util/perf/record.h"
#include "util/pieces.h"
#include "util/vec.h"

/* A snapshot that is being written. */
struct writer {
	const struct snapshot_request *request;
	struct scope scope; /* the request's */
	int dir_fd;
	const char *step; /* the file or folder that is being written, for messages */
	struct snapshot_result result;

	/* Of a scope with a process: whose PT is asked for, and who of them ran. */
	struct map asked, ran;

	/* Since the rings were copied. Facts and clock are as they were then. */
	struct source_moment moment; /* at which the rings were held */
	struct source_facts facts;
	struct ptclock_log *clock; /* NULL: all clocks are the records' */
	struct perffile *file;
	struct cpucopy *cpus; /* request->source->n_cpus of them */
	/* Who ran, of those asked for, and when last; and their parents, from the records on. */
	struct map pids;
	uint64_t time_first, time_last; /* of all records that are noted; 0: there is none */
	uint64_t bytes_dropped;         /* of PT that was overwritten while it was copied */
	uint64_t complete_since; /* all PT since then is here, in ns; 0: nothing was overwritten */

	/* Since the records were gathered. What it points to is borrowed. */
	struct snapshot_known known;

	struct bundle *bundle;
	struct selection *selection; /* of known.objects */
	struct userparts parts;
	VEC(struct perffile_object) with_build_id;

	/* What was kept of code that is in no file, and what not: lines of the manifest. */
	char *notes;
	size_t notes_size;
	FILE *notes_stream;
};

static int writer_init(struct writer *w)
{
	w->notes_stream = open_memstream(&w->notes, &w->notes_size);
	w->cpus = calloc(w->request->source->n_cpus, sizeof(*w->cpus));
	if (!w->notes_stream || !w->cpus)
		return -ENOMEM;
	w->parts = (struct userparts){ .max = w->request->snapshots_max,
				       .before = w->request->snapshots_taken };
	return bundle_new(w->dir_fd, w->request->cancel, &w->bundle);
}

static void writer_deinit(struct writer *w)
{
	for (uint32_t i = 0; w->cpus && i < w->request->source->n_cpus; i++)
		cpucopy_deinit(&w->cpus[i]);
	free(w->cpus);
	(void)perffile_free(w->file);
	(void)ptclock_log_free(w->clock);
	map_deinit(&w->pids);
	map_deinit(&w->asked);
	map_deinit(&w->ran);
	if (w->notes_stream)
		(void)fclose(w->notes_stream);
	free(w->notes);
	(void)selection_free(w->selection);
	(void)bundle_free(w->bundle);
	vec_deinit(&w->with_build_id);
}

/* --- the rings ------------------------------------------------------------------------------- */

/* A record of @time is written. */
static void note_time(struct writer *w, uint64_t time)
{
	if (time == 0)
		return;
	if (w->time_first == 0 || time < w->time_first)
		w->time_first = time;
	if (time > w->time_last)
		w->time_last = time;
}

/* The process, or one that has its mappings, ran at @time. Return: 0, or -ENOMEM. */
static int note_ran(struct map *pids, uint32_t pid, uint64_t time)
{
	uint64_t *last = map_get(pids, pid);

	if (!last)
		return map_put(pids, pid, time);
	*last = time > *last ? time : *last;
	return 0;
}

static int note_switches(struct writer *w, const struct cpucopy *cpu)
{
	struct cursor c = cpucopy_records(cpu);
	struct record record;
	int r = 0;

	if (scope_has_processes(&w->scope))
		r = scope_add_ran(&w->asked, c, &w->ran);
	if (r < 0)
		return r;
	while (record_next(&c, &record) == 0) {
		note_time(w, record.trailer.time);
		if (scope_has_processes(&w->scope) && !map_get(&w->asked, record.trailer.pid))
			continue;
		r = note_ran(&w->pids, record.trailer.pid, record.trailer.time);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Find who is in the control group now. Return: 0; -ENXIO if there is no such group; or another
 * negative errno. */
static int find_group(struct writer *w)
{
	_cleanup_(fd_closep) int fd = cgroup_open_root();
	const int r = fd < 0 ? fd : cgroup_pids(fd, w->scope.cgroup, &w->asked);

	return r == -ENOENT ? -ENXIO : r;
}

/*
 * Ask what the daemon knows, since the rings are held. With the kernel's code, this is asked again
 * when that has been copied: what changed meanwhile is told by the records.
 */
static int gather_known(struct writer *w)
{
	const struct snapshot_request *q = w->request;

	return w->known.tasks && !q->source->facts.kernel ? 0 : q->gather(q->userdata, &w->known);
}

/* Whose PT is asked for. Once the rings are copied, so that the records name all that
 * were forked before the rings were held. */
static int find_asked(struct writer *w)
{
	_cleanup_(fd_closep) int proc_fd = -1;
	int r;

	if (!scope_has_processes(&w->scope))
		return 0;
	proc_fd = dirs_open(AT_FDCWD, "/proc");
	if (proc_fd < 0)
		return proc_fd;
	r = gather_known(w);
	if (r == 0 && w->scope.cgroup[0])
		r = find_group(w);
	return r < 0 ? r : scope_pids(&w->scope, w->known.tasks, proc_fd, &w->asked);
}

/* Did somebody run there who is asked for? If not, forget what was copied. */
static bool is_in_scope(struct writer *w, uint32_t cpu)
{
	if (!scope_has_processes(&w->scope) || scope_ran(&w->asked, cpucopy_records(&w->cpus[cpu])))
		return true;
	cpucopy_deinit(&w->cpus[cpu]);
	return false;
}

/* A moment on the records' clock as a TSC. Never 0. */
static uint64_t tsc_at(const struct source_facts *facts, uint64_t ns)
{
	const uint64_t tsc = tsc_from_ns(&facts->tsc, ns);

	return tsc ? tsc : 1;
}

/* What is known of a ring's beginning: where it was overwritten, the snapshot is not whole. */
static void note_oldest(struct writer *w, struct cpucopy *cpu)
{
	uint64_t since;

	cpucopy_find_oldest(cpu, &w->facts, w->moment.ns);
	w->bytes_dropped += cpu->pt_dropped;
	w->result.bytes_overwritten += cpu->pt_overwritten;
	if (cpu->pt_overwritten == 0)
		return;
	/* Without a PSB nothing of it can be decoded. */
	since = cpu->pt_oldest ? cpu->pt_oldest : w->moment.ns;
	if (since > w->complete_since)
		w->complete_since = since;
}

static int write_pt(struct writer *w, uint32_t i)
{
	struct cpucopy *cpu = &w->cpus[i];
	int r = 0;

	note_oldest(w, cpu);
	if (cpu->pt && cpu->pt_bytes > 0) {
		w->result.bytes_pt += cpu->pt_bytes;
		w->result.n_cpus++;
		r = perffile_write_aux(w->file, i, cpu->pt_head - cpu->pt_bytes,
				       tsc_at(&w->facts, w->moment.ns), cpu->pt + cpu->pt_start,
				       cpu->pt_bytes);
	}
	cpucopy_forget_pt(cpu);
	return r;
}

static void release_once(struct source *source, bool *held)
{
	if (*held && source->ops->release)
		source->ops->release(source);
	*held = false;
}

/* What goes with the rings: if the machine is suspended after their release, it changes. */
static int copy_facts(struct writer *w)
{
	struct source *source = w->request->source;

	w->facts = source->facts;
	return source->clock ? ptclock_log_copy(source->clock, &w->clock) : 0;
}

/* Held, copied, and written only then: the rings' writers go on. */
static int copy_rings(struct writer *w)
{
	struct source *source = w->request->source;
	struct ringcopy rings = {
		.source = source,
		.cpus = w->cpus,
		.scope = &w->scope,
		.cancel = w->request->cancel,
	};
	bool held = true;
	uint32_t end = 0;
	int r;

	ringcopy_prepare(&rings);
	r = source->ops->hold(source, &w->moment);
	if (r < 0)
		return r;
	for (uint32_t first = 0; r == 0 && first < source->n_cpus; first = end) {
		r = ringcopy_some(&rings, first, &end);
		if (r == 0 && first == 0)
			r = copy_facts(w);
		if (end == source->n_cpus)
			release_once(source, &held);
		if (r == 0 && first == 0)
			r = perffile_new(w->dir_fd, PTD_SNAPSHOT_DATA, &w->facts, &w->file);
		if (r == 0 && first == 0)
			r = find_asked(w);
		for (uint32_t i = first; r == 0 && i < end; i++) {
			if (is_in_scope(w, i))
				r = note_switches(w, &w->cpus[i]);
			if (r == 0)
				r = write_pt(w, i);
		}
	}
	release_once(source, &held);
	return r;
}

/* Return: 0; -ESRCH if no process of the scope ran; -ENXIO if its control group is missing;
 * -ECANCELED; or another negative errno. */
static int write_rings(struct writer *w)
{
	const int r = copy_rings(w);

	if (r < 0 || !scope_has_processes(&w->scope))
		return r;
	return w->pids.n_used == 0 ? -ESRCH : 0;
}

/* --- the records ----------------------------------------------------------------------------- */

/* The data file has beside PT the records of the tasks that ran and of their parents, who ran when
 * on each CPU, and what else happened to those who ran. */

/* A child has the mappings of its parent, so the parents of those who ran matter too. */
static int add_parents(struct writer *w)
{
	VEC(struct record_task) forks = {};
	int r = 0;

	for (size_t i = 0; r == 0 && i < w->known.tasks->n_spans; i++) {
		struct cursor c = w->known.tasks->spans[i];
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
		const uint64_t *ran = map_get(&w->pids, forks.items[i].pid);

		if (ran)
			r = note_ran(&w->pids, forks.items[i].ppid, *ran);
	}
	vec_deinit(&forks);
	return r;
}

/* Says who ran here when the oldest record that is left was written; the one that said so before
 * is gone. */
static void write_itrace_start(struct writer *w, uint32_t cpu, const struct record *oldest)
{
	const struct record_ids who = { oldest->trailer.pid, oldest->trailer.tid };
	struct trailer trailer = record_trailer(who.pid, who.tid, oldest->trailer.time);
	uint8_t record[RECORD_OWN_MAX];

	trailer.cpu = cpu;
	perffile_write(w->file, record,
		       record_write_itrace_start(&who, &trailer, record, sizeof(record)));
}

/* Return: the pid that a task record is about; 0: it concerns all processes. */
static uint32_t task_of(const struct record *record)
{
	uint32_t pid;

	return record_read_pid(record->header.type, record->body, &pid) < 0 ? 0 : pid;
}

static void write_task(struct writer *w, const struct record *record)
{
	perffile_write(w->file, record->bytes, record->header.size);
}

/* Write the records of tasks that ran, and of their parents. No others are needed. */
static void write_tasks(struct writer *w)
{
	for (size_t i = 0; i < w->known.tasks->n_spans; i++) {
		struct cursor c = w->known.tasks->spans[i];
		struct record record;

		while (record_next(&c, &record) == 0) {
			const uint32_t pid = task_of(&record);

			if (pid != 0 && !map_get(&w->pids, pid))
				continue;
			note_time(w, record.trailer.time);
			write_task(w, &record);
		}
	}
}

static void write_switches(struct writer *w)
{
	for (uint32_t i = 0; i < w->request->source->n_cpus; i++) {
		const struct cpucopy *cpu = &w->cpus[i];
		struct cursor c = cpucopy_records(cpu);
		struct record oldest;

		if (cpu->switches_cut && record_next(&c, &oldest) == 0)
			write_itrace_start(w, i, &oldest);
		c = cpucopy_records(cpu);
		perffile_write(w->file, c.pos, cursor_left(&c));
	}
}

/* Write the events of those who ran, as the kernel's tracepoints of the same names would. */
static void write_events(struct writer *w)
{
	uint8_t bytes[RECORD_OWN_MAX];

	for (uint32_t i = 0; i < w->request->source->n_cpus; i++) {
		const struct cpucopy *cpu = &w->cpus[i];

		for (size_t k = 0; k < cpu->n_events; k++) {
			const struct source_event *e = &cpu->events[k];
			struct trailer who = record_trailer(e->pid, e->tid, e->time);
			size_t size;

			if (!map_get(&w->pids, e->pid))
				continue;
			who.cpu = i;
			if (e->kind == SOURCE_EVENT_SYSCALL)
				size =
				    record_write_sys_enter(e->number, &who, bytes, sizeof(bytes));
			else
				size = record_write_signal_deliver(e->number, e->handler, &who,
								   bytes, sizeof(bytes));
			perffile_write(w->file, bytes, size);
		}
	}
}

static int write_records(struct writer *w)
{
	int r;

	r = gather_known(w);
	if (r == 0)
		r = add_parents(w);
	if (r < 0)
		return r;
	write_tasks(w);
	write_switches(w);
	write_events(w);
	return 0;
}

/* --- files beside it ------------------------------------------------------------------------- */

static int add_object(struct writer *w, const struct object *object, bool by_content)
{
	uint64_t size;
	int r;

	r = bundle_add_object(w->bundle, w->request->store_fd, object, by_content, &size);
	if (r < 0 || size == 0)
		return r;
	w->result.bytes += size;
	w->result.n_objects++;
	if (!by_content)
		return vec_push(&w->with_build_id, { object->path, &object->build_id });
	return 0;
}

static int select_objects(struct writer *w)
{
	int r;

	r = selection_new(w->known.objects, w->known.n_objects, &w->selection);
	for (size_t i = 0; r == 0 && i < w->known.tasks->n_spans; i++) {
		struct cursor c = w->known.tasks->spans[i];
		struct record_mmap2 mmap;
		struct record record;
		const uint64_t *ran;

		while (r == 0 && record_next(&c, &record) == 0)
			if (record.header.type == PERF_RECORD_MMAP2 &&
			    record_get_mmap2(&record, &mmap) == 0 &&
			    !jitfiles_has_dump(w->known.jitfiles, w->known.n_jitfiles, &mmap) &&
			    (ran = map_get(&w->pids, mmap.pid)))
				r = selection_add(w->selection, &mmap, *ran);
	}
	return r == 0 ? selection_finish(w->selection, w->request->copier, &w->parts,
					 w->request->cancel)
		      : r;
}

static int add_objects(struct writer *w)
{
	const struct object *object;
	bool by_content;
	size_t at = 0;
	int r;

	w->step = PTD_SNAPSHOT_OBJECTS;
	r = select_objects(w);
	if (r == 0) {
		w->result.n_missing = (uint32_t)selection_n_missing(w->selection);
		w->result.n_without_room = (uint32_t)selection_n_without_room(w->selection);
	}
	while (r == 0 && (object = selection_next(w->selection, &at, &by_content)))
		r = cancel_asked(w->request->cancel) ? -ECANCELED
						     : add_object(w, object, by_content);
	return r;
}

static void put_objects_map(FILE *f, void *userdata)
{
	const struct writer *w = userdata;

	selection_write_map(w->selection, f);
}

static void put_clock(FILE *f, void *userdata)
{
	const struct writer *w = userdata;

	ptclock_log_write(w->clock, w->time_first ? tsc_at(&w->facts, w->time_first) : 0, f);
}

/* --- manifest --------------------------------------------------------------------------------- */

/* UTC. */
static void print_time(FILE *f, const char *key, uint64_t realtime_ns)
{
	const time_t seconds = (time_t)(realtime_ns / 1000000000);
	struct tm tm;
	char text[32];

	gmtime_r(&seconds, &tm);
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
	fprintf(f, "%s=%s.%06" PRIu64 "Z\n", key, text, realtime_ns / 1000 % 1000000);
}

static void write_amounts(const struct writer *w, FILE *f)
{
	fprintf(f, "bytes=%" PRIu64 "\npt_bytes=%" PRIu64 "\n", w->result.bytes,
		w->result.bytes_pt);
	fprintf(f, PTD_MANIFEST_DROPPED "=%" PRIu64 "\n", w->bytes_dropped);
	fprintf(f, PTD_MANIFEST_OVERWRITTEN "=%" PRIu64 "\n", w->result.bytes_overwritten);
	if (w->complete_since == 0)
		return;
	print_time(f, "complete_since", w->complete_since - w->moment.ns + w->moment.realtime_ns);
	fprintf(f, PTD_MANIFEST_COMPLETE_SINCE "=%" PRIu64 "\n", w->complete_since);
}

static void put_manifest(FILE *f, void *userdata)
{
	const struct writer *w = userdata;
	const struct snapshot_request *q = w->request;
	const struct source_facts *facts = &w->facts;
	struct utsname host = {};

	(void)fflush(w->notes_stream);
	(void)uname(&host);
	fprintf(f, PTD_MANIFEST_FORMAT "=" PTD_SNAPSHOT_FORMAT "\n");
	fprintf(f, "id=%s\n", q->id);
	print_time(f, "created", w->moment.realtime_ns);
	fprintf(f, PTD_MANIFEST_CLOCK "=%" PRIu64 "\n", w->moment.ns);
	fprintf(f, PTD_MANIFEST_REALTIME_OFFSET "=%" PRId64 "\n",
		(int64_t)(w->moment.realtime_ns - w->moment.ns));
	fprintf(f, PTD_MANIFEST_MONOTONIC_OFFSET "=%" PRId64 "\n",
		(int64_t)(w->moment.ns - w->moment.monotonic_ns));
	fprintf(f, "host=%s\nkernel=%s\nmachine=%s\n", host.nodename, host.release, host.machine);
	fprintf(f, "recorder=ptd %s\nsource=%s\ncpuid=%s\n", PTD_VERSION, facts->name,
		facts->cpuid);
	fprintf(f,
		PTD_MANIFEST_TAKEN_BY_UID "=%" PRIuMAX "\ntaken_by_pid=%" PRIdMAX
					  "\ntaken_by_comm=%s\n",
		(uintmax_t)q->caller->uid, (intmax_t)q->caller->pid, q->caller->comm);
	fprintf(f, "pt_config=0x%" PRIx64 "\n", facts->attr_config);
	write_amounts(w, f);
	fprintf(f, PTD_MANIFEST_COMPLETE_UNTIL "=%" PRIu64 "\n", w->moment.complete_until_ns);
	fprintf(f, "objects=%" PRIu32 "\nobjects_missing=%" PRIu32 "\n", w->result.n_objects,
		w->result.n_missing);
	if (w->scope.started_ns > 0)
		fprintf(f, PTD_MANIFEST_COMMAND_COMPLETE "=%s\n",
			w->result.complete_since_ns > w->scope.started_ns ? "no" : "yes");
	scope_write_manifest(&w->scope, &w->ran, (int64_t)(w->moment.ns - w->moment.monotonic_ns),
			     f);
	fprintf(f, PTD_MANIFEST_SIDEBAND_LOST "=%" PRIu64 "\n", w->known.sideband_lost);
	if (w->known.n_unread > 0)
		fprintf(f, PTD_MANIFEST_SIDEBAND_UNREAD "=%" PRIu64 "\n", w->known.n_unread);
	if (w->known.taken_over_ns > 0)
		fprintf(f, "taken_over_ns=%" PRIu64 "\ncode_lost_bytes=%" PRIu64 "\n",
			w->known.taken_over_ns + w->moment.ns - w->moment.monotonic_ns,
			w->known.code_lost_bytes);
	(void)fwrite(w->notes, 1, w->notes_size, f);
	fprintf(f, PTD_MANIFEST_SIDEBAND_SINCE "=%" PRIu64 "\n", w->known.tasks->since_ns);
	for (size_t i = 0; i < w->known.tasks->n_cuts; i++) {
		const struct sideband_cut *cut = &w->known.tasks->cuts[i];

		fprintf(f,
			PTD_MANIFEST_SIDEBAND_SINCE ".%u=%" PRIu64 "\nsideband_dropped.%u=%" PRIu64
						    "\n",
			(unsigned)cut->uid, cut->since_ns, (unsigned)cut->uid, cut->n_dropped);
	}
	fprintf(f, "cpus=%" PRIu32 "\n", w->result.n_cpus);
	for (uint32_t i = 0; i < q->source->n_cpus; i++)
		cpucopy_write_manifest(&w->cpus[i], i, f);
}

/* --- the kernel's code ------------------------------------------------------------------------ */

static int put_record(void *userdata, const void *bytes, size_t size)
{
	const struct writer *w = userdata;

	perffile_write(w->file, bytes, size);
	return 0;
}

static int sum_kernel(struct writer *w)
{
	static const char *const names[] = { PTD_SNAPSHOT_KCORE, PTD_SNAPSHOT_KALLSYMS,
					     PTD_SNAPSHOT_MODULES };
	uint64_t size;
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_LEN(names); i++) {
		char hash[SHA256_HEX_SIZE] = "";

		r = bundle_add_sum(w->bundle, names[i], hash, &size);
		/* They are the same in most snapshots. */
		if (r == 0)
			storedir_share(w->request->store_fd, hash, w->dir_fd, names[i]);
	}
	return r;
}

/* What cannot be had is said, and left out: what else is in the snapshot is worth as much. */
static int add_kernel(struct writer *w)
{
	_cleanup_(fd_closep) int dir_fd = -1;
	struct kernelfiles files;
	const char *why;
	int r;

	if (!w->request->source->facts.kernel)
		return 0;
	w->step = PTD_SNAPSHOT_KCORE_DIR;
	if (mkdirat(w->dir_fd, PTD_SNAPSHOT_KCORE_DIR, 0750) < 0)
		return -errno;
	dir_fd = dirs_open(w->dir_fd, PTD_SNAPSHOT_KCORE_DIR);
	if (dir_fd < 0)
		return dir_fd;
	r = kernelfiles_write(&(struct kernelfiles_request){ .runtime_dir = w->request->runtime_dir,
							     .dir_fd = dir_fd,
							     .cancel = w->request->cancel,
							     .put = put_record,
							     .userdata = w },
			      &files, &why);
	if (r == KERNELFILES_NONE) {
		fprintf(w->notes_stream, "kernel_code=refused: %s\n", why);
		return dirs_remove(w->dir_fd, PTD_SNAPSHOT_KCORE_DIR);
	}
	if (r == 0)
		r = sum_kernel(w);
	if (r < 0)
		return r;
	fprintf(w->notes_stream, "kernel_code=%" PRIu64 "\n", files.bytes);
	if (files.bytes_unreadable > 0)
		fprintf(w->notes_stream, "kernel_code_unreadable=%" PRIu64 "\n",
			files.bytes_unreadable);
	if (files.n_left_out > 0)
		fprintf(w->notes_stream, "kernel_code_left_out=%" PRIu64 "\n", files.n_left_out);
	w->result.bytes += files.bytes;
	return 0;
}

/* --- all of it ------------------------------------------------------------------------------- */

static int write_data(struct writer *w)
{
	int r;

	w->step = PTD_SNAPSHOT_DATA;
	r = write_rings(w);
	userparts_take(&w->parts, 0, w->result.bytes_pt);
	/* Before the records: what changed between the rings and the copy is told by them. */
	if (r == 0)
		r = add_kernel(w);
	if (r == 0) {
		w->step = PTD_SNAPSHOT_DATA;
		r = write_records(w);
	}
	w->result.taken_ns = w->moment.monotonic_ns;
	if (w->complete_since > 0)
		w->result.complete_since_ns =
		    w->complete_since - w->moment.ns + w->moment.monotonic_ns;
	return r;
}

/* Nothing more is written to the file "data". */
static int finish_data(struct writer *w)
{
	const struct perffile_about *about;
	struct utsname host;

	w->step = PTD_SNAPSHOT_DATA;
	if (uname(&host) < 0)
		return -errno;
	about = &(struct perffile_about){
		.host = host.nodename,
		.release = host.release,
		.machine = host.machine,
		.version = PTD_VERSION,
		.cpuid = w->facts.cpuid,
		.n_cpus = w->request->source->n_cpus,
		.time_first = w->time_first,
		.time_last = w->time_last,
		.objects = w->with_build_id.items,
		.n_objects = w->with_build_id.n,
	};
	return perffile_finish(w->file, about);
}

static int add_livecode(struct writer *w)
{
	_cleanup_(livecode_deinit) struct livecode code = {
		.request = w->request,
		.known = &w->known,
		.dir_fd = w->dir_fd,
		.bundle = w->bundle,
		.pids = &w->pids,
		.parts = &w->parts,
		.notes = w->notes_stream,
		.pages_fd = -1,
	};
	int r;

	w->step = PTD_SNAPSHOT_MEM;
	r = livecode_add_memory(&code);
	if (r == 0) {
		w->step = PTD_SNAPSHOT_JIT;
		r = livecode_add_files(&code);
	}
	w->result.bytes += code.bytes;
	return r;
}

static void put_pieces(FILE *f, void *userdata)
{
	pieces_print(userdata, f);
}

/* Add the data file, which is complete, and the hashes of its pieces. It is read once for both. */
static int add_data(struct writer *w)
{
	const struct effort effort = { .size_max = UINT64_MAX, .cancel = w->request->cancel };
	_cleanup_(pieces_freep) struct pieces *pieces = NULL;
	_cleanup_(fd_closep) int fd = openat(w->dir_fd, PTD_SNAPSHOT_DATA, O_RDONLY | O_CLOEXEC);
	char hash[SHA256_HEX_SIZE];
	uint64_t size;
	int r;

	if (fd < 0)
		return -errno;
	r = pieces_of_file(fd, &effort, hash, &pieces);
	if (r == 0)
		r = bundle_add_sum(w->bundle, PTD_SNAPSHOT_DATA, hash, &size);
	if (r < 0)
		return r;
	w->result.bytes += size;
	w->step = PTD_SNAPSHOT_PIECES;
	return bundle_add_file(w->bundle, w->step, put_pieces, pieces);
}

static int write_all(struct writer *w)
{
	int r;

	r = write_data(w);
	if (r == 0)
		r = add_livecode(w);
	if (r == 0)
		r = add_objects(w);
	if (r < 0)
		return r;

	r = finish_data(w);
	if (r == 0)
		r = add_data(w);
	if (r < 0)
		return r;

	w->step = PTD_SNAPSHOT_OBJECTS_MAP;
	r = bundle_add_file(w->bundle, w->step, put_objects_map, w);
	if (r < 0)
		return r;
	if (w->clock) {
		w->step = PTD_SNAPSHOT_CLOCK;
		r = bundle_add_file(w->bundle, w->step, put_clock, w);
		if (r < 0)
			return r;
	}
	w->step = PTD_SNAPSHOT_MANIFEST;
	r = bundle_add_file(w->bundle, w->step, put_manifest, w);
	if (r < 0)
		return r;
	w->step = PTD_SNAPSHOT_SUMS;
	return bundle_finish(w->bundle);
}

int snapshot_write(const struct snapshot_request *request, int dir_fd,
		   struct snapshot_result *ret_result, const char **reterr_what)
{
	struct writer w = { .request = request,
			    .scope = request->scope,
			    .dir_fd = dir_fd,
			    .step = PTD_SNAPSHOT_SUMS };
	int r;

	r = writer_init(&w);
	if (r == 0)
		r = write_all(&w);
	writer_deinit(&w);
	if (r < 0)
		*reterr_what = w.step;
	else
		*ret_result = w.result;
	return r;
}
