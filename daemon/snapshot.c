/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>

#include "daemon/bundle.h"
#include "daemon/cpucopy.h"
#include "daemon/jitfile.h"
#include "daemon/keep.h"
#include "daemon/kernelcode.h"
#include "daemon/livecode.h"
#include "daemon/perffile.h"
#include "daemon/ptclock.h"
#include "daemon/record.h"
#include "daemon/ringcopy.h"
#include "daemon/sideband.h"
#include "daemon/source.h"
#include "daemon/taken.h"
#include "decoder/util/dirs.h"
#include "decoder/util/map.h"
#include "decoder/util/vec.h"
#include "ptd/snapshot.h"

struct writer {
	const struct snapshot_request *request;
	struct snapshot_known known;
	struct source_moment frozen;
	int dir_fd;
	struct perffile *data;
	struct bundle *bundle;
	struct cpucopy *cpus; /* source->n_cpus of them */
	struct map pids;      /* those whose objects belong in the snapshot */
	struct map only;      /* those that are asked for, if not all are */
	struct taken *taken;  /* of known.objects */
	VEC(struct perffile_object) with_build_id;
	uint64_t time_first, time_last;
	struct snapshot_result result;
	const char *step; /* for messages */

	/* What was kept of code that is in no file, and what not: lines of the manifest. */
	char *notes;
	size_t notes_size;
	FILE *notes_stream;
};

static bool cancelled(const struct writer *w)
{
	return w->request->cancel && atomic_load(w->request->cancel);
}

static void stretch(struct writer *w, uint64_t time)
{
	if (time == 0)
		return;
	if (w->time_first == 0 || time < w->time_first)
		w->time_first = time;
	if (time > w->time_last)
		w->time_last = time;
}

/* --- who ran --------------------------------------------------------------------------------- */

static int note_switches(struct writer *w, const struct cpucopy *cpu)
{
	struct cursor c = cpucopy_records(cpu);
	struct record record;
	int r;

	while (record_next(&c, &record) == 0) {
		stretch(w, record.trailer.time);
		if (w->request->scope.pid && !map_get(&w->only, record.trailer.pid))
			continue;
		r = map_put(&w->pids, record.trailer.pid, 1);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Whose PT is asked for, as is known before the rings are frozen: who was started later is not. */
static int find_scope(struct writer *w)
{
	const struct snapshot_request *q = w->request;
	int r;

	if (q->scope.pid == 0)
		return 0;
	r = q->gather(q->userdata, &w->known);
	return r < 0 ? r : scope_pids(&q->scope, w->known.tasks, &w->only);
}

/* Did somebody run there who is asked for? If not, forget what was copied. */
static bool is_in_scope(struct writer *w, uint32_t cpu)
{
	if (w->request->scope.pid == 0 || scope_ran(&w->only, cpucopy_records(&w->cpus[cpu])))
		return true;
	cpucopy_deinit(&w->cpus[cpu]);
	return false;
}

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
	for (size_t i = forks.n; r == 0 && i-- > 0;)
		if (map_get(&w->pids, forks.items[i].pid))
			r = map_put(&w->pids, forks.items[i].ppid, 1);
	vec_deinit(&forks);
	return r;
}

/* --- data ------------------------------------------------------------------------------------ */

/* Says who ran here when the oldest record that is left was written; the one that said so before
 * is gone. */
static void write_itrace_start(struct writer *w, uint32_t cpu, const struct record *oldest)
{
	const struct {
		struct perf_event_header header;
		uint32_t pid, tid;
		struct perfabi_trailer trailer;
	} start = {
		.header = { .type = PERF_RECORD_ITRACE_START, .size = sizeof(start) },
		.pid = oldest->trailer.pid,
		.tid = oldest->trailer.tid,
		.trailer = { .pid = oldest->trailer.pid,
			     .tid = oldest->trailer.tid,
			     .time = oldest->trailer.time,
			     .cpu = cpu,
			     .id = RECORD_ID_SIDEBAND },
	};

	perffile_write(w->data, &start, sizeof(start));
}

/* Whom a task record tells of; 0: everybody. */
static uint32_t task_of(const struct record *record)
{
	struct cursor c = record->body;
	uint32_t pid = 0;

	switch (record->header.type) {
	case PERF_RECORD_COMM:
	case PERF_RECORD_MMAP2:
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		(void)!cursor_get(&c, sizeof(pid), &pid);
		return pid;
	default:
		return 0;
	}
}

/* Those of tasks that ran, and of their parents; the others are nobody's. */
static void write_tasks(struct writer *w)
{
	for (size_t i = 0; i < w->known.tasks->n_spans; i++) {
		struct cursor c = w->known.tasks->spans[i];
		struct record record;

		while (record_next(&c, &record) == 0) {
			const uint32_t pid = task_of(&record);

			if (pid != 0 && !map_get(&w->pids, pid))
				continue;
			stretch(w, record.trailer.time);
			perffile_write(w->data, record.bytes, record.header.size);
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
		perffile_write(w->data, c.pos, cursor_left(&c));
	}
}

/* A moment on the records' clock as a TSC. Never 0. */
static uint64_t tsc_at(const struct source_facts *facts, uint64_t ns)
{
	const struct ptclock_conversion conversion = {
		.shift = facts->time_shift,
		.mult = facts->time_mult,
		.zero = facts->time_zero,
	};
	const uint64_t tsc = ptclock_tsc(&conversion, ns);

	return tsc ? tsc : 1;
}

static int write_pt(struct writer *w, uint32_t i)
{
	struct cpucopy *cpu = &w->cpus[i];
	int r = 0;

	if (cpu->pt && cpu->pt_bytes > 0) {
		w->result.bytes_pt += cpu->pt_bytes;
		w->result.n_cpus++;
		r = perffile_write_aux(w->data, i, cpu->pt_head - cpu->pt_bytes,
				       tsc_at(&w->request->source->facts, w->frozen.ns),
				       cpu->pt + cpu->pt_start, cpu->pt_bytes);
	}
	cpucopy_forget_pt(cpu);
	return r;
}

static void thaw(struct source *source, bool *frozen)
{
	if (*frozen && source->ops->thaw)
		source->ops->thaw(source);
	*frozen = false;
}

/* Frozen, copied, and written only then: the rings' writers go on. */
static int write_rings(struct writer *w)
{
	struct source *source = w->request->source;
	struct ringcopy rings = {
		.source = source,
		.cpus = w->cpus,
		.scope = &w->request->scope,
		.cancel = w->request->cancel,
	};
	bool frozen = true;
	uint32_t end = 0;
	int r;

	ringcopy_prepare(&rings);
	r = source->ops->freeze(source, &w->frozen);
	if (r < 0)
		return r;
	for (uint32_t first = 0; r == 0 && first < source->n_cpus; first = end) {
		r = ringcopy_some(&rings, first, &end);
		if (end == source->n_cpus)
			thaw(source, &frozen);
		for (uint32_t i = first; r == 0 && i < end; i++) {
			if (is_in_scope(w, i))
				r = note_switches(w, &w->cpus[i]);
			if (r == 0)
				r = write_pt(w, i);
		}
	}
	thaw(source, &frozen);
	return r;
}

static int finish_data(struct writer *w)
{
	const struct perffile_about *about;
	struct utsname host;

	if (uname(&host) < 0)
		return -errno;
	about = &(struct perffile_about){
		.host = host.nodename,
		.release = host.release,
		.machine = host.machine,
		.version = PTD_VERSION,
		.cpuid = w->request->source->facts.cpuid,
		.n_cpus = w->request->source->n_cpus,
		.time_first = w->time_first,
		.time_last = w->time_last,
		.objects = w->with_build_id.items,
		.n_objects = w->with_build_id.n,
	};
	return perffile_finish(w->data, about);
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

static int take_objects(struct writer *w)
{
	int r;

	r = taken_new(w->known.objects, w->known.n_objects, &w->taken);
	for (size_t i = 0; r == 0 && i < w->known.tasks->n_spans; i++) {
		struct cursor c = w->known.tasks->spans[i];
		struct record_mmap2 mmap;
		struct record record;

		while (record_next(&c, &record) == 0)
			if (record.header.type == PERF_RECORD_MMAP2 &&
			    record_get_mmap2(&record, &mmap) == 0 && map_get(&w->pids, mmap.pid))
				taken_add(w->taken, &mmap);
	}
	return r == 0 ? taken_settle(w->taken, w->request->keep, w->request->cancel) : r;
}

static int add_objects(struct writer *w)
{
	const struct object *object;
	bool by_content;
	size_t at = 0;
	int r;

	w->step = PTD_SNAPSHOT_OBJECTS;
	r = take_objects(w);
	while (r == 0 && (object = taken_next(w->taken, &at, &by_content))) {
		if (object->error < 0)
			w->result.n_missing++;
		else
			r = cancelled(w) ? -ECANCELED : add_object(w, object, by_content);
	}
	return r;
}

static void put_objects_map(FILE *f, void *userdata)
{
	const struct writer *w = userdata;

	taken_print(w->taken, f);
}

static void put_clock(FILE *f, void *userdata)
{
	const struct writer *w = userdata;
	struct source *source = w->request->source;

	source->ops->print_clock(source, w->time_first, f);
}

static void put_manifest(FILE *f, void *userdata)
{
	const struct writer *w = userdata;
	const struct snapshot_request *q = w->request;
	const struct source_facts *facts = &q->source->facts;
	const time_t seconds = (time_t)(w->frozen.realtime_ns / 1000000000);
	struct utsname host = {};
	struct tm tm;
	char created[32];

	(void)uname(&host);
	gmtime_r(&seconds, &tm);
	strftime(created, sizeof(created), "%Y-%m-%dT%H:%M:%S", &tm);

	fprintf(f, PTD_MANIFEST_FORMAT "=" PTD_SNAPSHOT_FORMAT "\n");
	fprintf(f, "id=%s\n", q->id);
	fprintf(f, "created=%s.%06" PRIu64 "Z\n", created, w->frozen.realtime_ns / 1000 % 1000000);
	fprintf(f, "clock_ns=%" PRIu64 "\n", w->frozen.ns);
	fprintf(f, PTD_MANIFEST_REALTIME_OFFSET "=%" PRId64 "\n",
		(int64_t)(w->frozen.realtime_ns - w->frozen.ns));
	fprintf(f, PTD_MANIFEST_MONOTONIC_OFFSET "=%" PRId64 "\n",
		(int64_t)(w->frozen.ns - w->frozen.monotonic_ns));
	fprintf(f, "host=%s\nkernel=%s\nmachine=%s\n", host.nodename, host.release, host.machine);
	fprintf(f, "recorder=ptd %s\nsource=%s\ncpuid=%s\n", PTD_VERSION, facts->name,
		facts->cpuid);
	fprintf(f, "pt_config=0x%" PRIx64 "\n", facts->attr_config);
	fprintf(f, "bytes=%" PRIu64 "\npt_bytes=%" PRIu64 "\n", w->result.bytes,
		w->result.bytes_pt);
	fprintf(f, "objects=%" PRIu32 "\nobjects_missing=%" PRIu32 "\n", w->result.n_objects,
		w->result.n_missing);
	scope_print(&q->scope, f);
	fprintf(f, "sideband_lost=%" PRIu64 "\n", w->known.sideband_lost);
	(void)fflush(w->notes_stream);
	(void)fwrite(w->notes, 1, w->notes_size, f);
	fprintf(f, PTD_MANIFEST_SIDEBAND_SINCE "=%" PRIu64 "\n", w->known.tasks->since_ns);
	fprintf(f, "cpus=%" PRIu32 "\n", w->result.n_cpus);
	for (uint32_t i = 0; i < q->source->n_cpus; i++)
		cpucopy_print(&w->cpus[i], i, f);
}

/* --- the kernel's code ------------------------------------------------------------------------ */

static int put_record(void *userdata, const void *bytes, size_t size)
{
	const struct writer *w = userdata;

	perffile_write(w->data, bytes, size);
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
	}
	return r;
}

/* What cannot be had is said, and left out: what else is in the snapshot is worth as much. */
static int add_kernel(struct writer *w)
{
	_cleanup_(fd_closep) int dir_fd = -1, proc_fd = -1;
	const char *why = NULL;
	uint64_t bytes;
	int r;

	if (!w->request->source->facts.kernel)
		return 0;
	w->step = PTD_SNAPSHOT_KCORE_DIR;
	if (mkdirat(w->dir_fd, PTD_SNAPSHOT_KCORE_DIR, 0750) < 0)
		return -errno;
	dir_fd = dirs_open(w->dir_fd, PTD_SNAPSHOT_KCORE_DIR);
	proc_fd = dirs_open(AT_FDCWD, "/proc");
	if (dir_fd < 0 || proc_fd < 0)
		return dir_fd < 0 ? dir_fd : proc_fd;
	r = kernelcode_write(proc_fd, dir_fd, put_record, w, &bytes, &why);
	if (why) {
		fprintf(w->notes_stream, "kernel_code=refused: %s\n", why);
		return dirs_remove(w->dir_fd, PTD_SNAPSHOT_KCORE_DIR);
	}
	if (r == 0)
		r = sum_kernel(w);
	if (r < 0)
		return r;
	fprintf(w->notes_stream, "kernel_code=%" PRIu64 "\n", bytes);
	w->result.bytes += bytes;
	return 0;
}

/* --- all of it ------------------------------------------------------------------------------- */

static int write_data(struct writer *w)
{
	int r;

	w->step = PTD_SNAPSHOT_DATA;
	r = perffile_new(w->dir_fd, PTD_SNAPSHOT_DATA, &w->request->source->facts, &w->data);
	if (r == 0)
		r = find_scope(w);
	if (r == 0)
		r = write_rings(w);
	if (r == 0 && w->request->scope.pid && w->pids.n_used == 0)
		r = -ESRCH;
	/* Before the records: what changed between the rings and the copy is told by them. */
	if (r == 0)
		r = add_kernel(w);
	if (r == 0) {
		w->step = PTD_SNAPSHOT_DATA;
		r = w->request->gather(w->request->userdata, &w->known);
	}
	if (r == 0)
		r = add_parents(w);
	if (r < 0)
		return r;
	write_tasks(w);
	write_switches(w);
	return 0;
}

static int add_livecode(struct writer *w)
{
	struct livecode code = {
		.request = w->request,
		.known = &w->known,
		.dir_fd = w->dir_fd,
		.bundle = w->bundle,
		.pids = &w->pids,
		.notes = w->notes_stream,
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

static int write_all(struct writer *w)
{
	char hash[SHA256_HEX_SIZE] = "";
	uint64_t size;
	int r;

	r = write_data(w);
	if (r == 0)
		r = add_livecode(w);
	if (r == 0)
		r = add_objects(w);
	if (r < 0)
		return r;

	w->step = PTD_SNAPSHOT_DATA;
	r = finish_data(w);
	if (r == 0)
		r = bundle_add_sum(w->bundle, PTD_SNAPSHOT_DATA, hash, &size);
	if (r < 0)
		return r;
	w->result.bytes += size;

	w->step = PTD_SNAPSHOT_OBJECTS_MAP;
	r = bundle_add_file(w->bundle, w->step, put_objects_map, w);
	if (r < 0)
		return r;
	if (w->request->source->ops->print_clock) {
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
	struct writer w = { .request = request, .dir_fd = dir_fd, .step = PTD_SNAPSHOT_SUMS };
	int r;

	w.cpus = calloc(request->source->n_cpus, sizeof(*w.cpus));
	w.notes_stream = open_memstream(&w.notes, &w.notes_size);
	r = w.cpus && w.notes_stream ? bundle_new(dir_fd, &w.bundle) : -ENOMEM;
	if (r == 0)
		r = write_all(&w);
	for (uint32_t i = 0; w.cpus && i < request->source->n_cpus; i++)
		cpucopy_deinit(&w.cpus[i]);
	free(w.cpus);
	if (w.notes_stream)
		(void)fclose(w.notes_stream);
	free(w.notes);
	(void)taken_free(w.taken);
	(void)perffile_free(w.data);
	(void)bundle_free(w.bundle);
	map_deinit(&w.pids);
	map_deinit(&w.only);
	vec_deinit(&w.with_build_id);

	if (r < 0)
		*reterr_what = w.step;
	else
		*ret_result = w.result;
	return r;
}

uint64_t snapshot_estimate(const struct snapshot_request *request,
			   const struct snapshot_known *known)
{
	uint64_t bytes = request->source->ops->held(request->source);

	for (size_t i = 0; i < known->tasks->n_spans; i++)
		bytes += cursor_left(&known->tasks->spans[i]);
	for (size_t i = 0; i < known->n_jitfiles; i++)
		bytes += known->jitfiles[i].reason ? 0 : known->jitfiles[i].size;
	return bytes;
}
