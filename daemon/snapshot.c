/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/snapshot.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include "daemon/bundle.h"
#include "daemon/keep.h"
#include "daemon/perffile.h"
#include "daemon/record.h"
#include "daemon/sideband.h"
#include "daemon/source.h"
#include "decoder/util/map.h"
#include "decoder/util/vec.h"
#include "ptd/snapshot.h"

/* What became of one CPU's rings. */
struct cpu {
	uint8_t *switches; /* a copy of its switch ring */
	size_t switches_size;
	size_t switches_start; /* of the whole records in it */
	bool switches_cut;     /* older ones are gone */
	uint64_t switches_oldest, switches_newest;

	uint64_t pt_head;
	uint64_t pt_bytes;   /* in the file */
	uint64_t pt_dropped; /* overwritten while it was copied */
};

struct writer {
	const struct snapshot_request *request;
	int dir_fd;
	struct perffile *data;
	struct bundle *bundle;
	struct cpu *cpus; /* source->n_cpus of them */
	struct map pids;  /* those whose objects belong in the snapshot */
	bool *taken;      /* of request->objects */
	VEC(struct perffile_object) with_build_id;
	uint64_t time_first, time_last;
	struct snapshot_result result;
	const char *step; /* for messages */
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

static void copy_view(const struct source_view *v, uint8_t *to)
{
	if (v->a_size > 0)
		memcpy(to, v->a, v->a_size);
	if (v->b_size > 0)
		memcpy(to + v->a_size, v->b, v->b_size);
}

/* --- who ran --------------------------------------------------------------------------------- */

static int note_switches(struct writer *w, struct cpu *cpu)
{
	struct cursor c = cursor_from(cpu->switches + cpu->switches_start,
				      cpu->switches_size - cpu->switches_start);
	struct record record;
	int r;

	while (record_next(&c, &record) == 0) {
		if (cpu->switches_oldest == 0)
			cpu->switches_oldest = record.trailer.time;
		cpu->switches_newest = record.trailer.time;
		stretch(w, record.trailer.time);
		r = map_put(&w->pids, record.trailer.pid, 1);
		if (r < 0)
			return r;
	}
	return 0;
}

static int copy_switches(struct writer *w, uint32_t i)
{
	struct source *source = w->request->source;
	struct cpu *cpu = &w->cpus[i];
	struct source_view v;
	uint64_t aux, gone;
	size_t start;
	int r;

	r = source->ops->view_switch(source, i, &v);
	if (r < 0)
		return r;
	cpu->switches_size = v.a_size + v.b_size;
	cpu->switches = malloc(cpu->switches_size + 1);
	if (!cpu->switches)
		return -ENOMEM;
	copy_view(&v, cpu->switches);

	r = source->ops->overtaken(source, i, &aux, &gone);
	if (r < 0)
		return r;
	r = record_resync(cpu->switches + gone, cpu->switches_size - gone, i, &start);
	if (r < 0)
		return r;
	cpu->switches_start = gone + start;
	cpu->switches_cut = v.head > cpu->switches_size || cpu->switches_start > 0;
	return note_switches(w, cpu);
}

/* A child has the mappings of its parent, so the parents of those who ran matter too. */
static int add_parents(struct writer *w)
{
	VEC(struct record_task) forks = {};
	int r = 0;

	for (size_t i = 0; r == 0 && i < w->request->tasks->n_spans; i++) {
		struct cursor c = w->request->tasks->spans[i];
		struct record record;
		struct record_task fork;

		while (r == 0 && record_next(&c, &record) == 0) {
			stretch(w, record.trailer.time);
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

static void write_records(struct writer *w)
{
	const struct sideband_view *tasks = w->request->tasks;

	for (size_t i = 0; i < tasks->n_spans; i++)
		perffile_write(w->data, tasks->spans[i].pos, cursor_left(&tasks->spans[i]));

	for (uint32_t i = 0; i < w->request->source->n_cpus; i++) {
		const struct cpu *cpu = &w->cpus[i];
		const uint8_t *records = cpu->switches + cpu->switches_start;
		const size_t size = cpu->switches_size - cpu->switches_start;
		struct cursor c = cursor_from(records, size);
		struct record oldest;

		if (cpu->switches_cut && record_next(&c, &oldest) == 0)
			write_itrace_start(w, i, &oldest);
		perffile_write(w->data, records, size);
	}
}

/* A moment on the records' clock as a TSC: the inverse of perf's conversion. Never 0. */
static uint64_t tsc_at(const struct source_facts *facts, uint64_t ns)
{
	const uint64_t t = ns - facts->time_zero;
	const uint64_t quotient = t / facts->time_mult, rest = t % facts->time_mult;
	const uint64_t tsc =
	    (quotient << facts->time_shift) + (rest << facts->time_shift) / facts->time_mult;

	return tsc ? tsc : 1;
}

static int write_pt(struct writer *w, uint32_t i)
{
	struct source *source = w->request->source;
	struct cpu *cpu = &w->cpus[i];
	_cleanup_(freep) uint8_t *bytes = NULL;
	struct source_view v;
	uint64_t gone, switches;
	size_t size;
	int r;

	r = source->ops->view_aux(source, i, &v);
	if (r < 0)
		return r;
	size = v.a_size + v.b_size;
	cpu->pt_head = v.head;
	if (size == 0)
		return 0;

	bytes = malloc(size);
	if (!bytes)
		return -ENOMEM;
	copy_view(&v, bytes);
	r = source->ops->overtaken(source, i, &gone, &switches);
	if (r < 0)
		return r;
	cpu->pt_dropped = gone;
	cpu->pt_bytes = size - gone;
	if (cpu->pt_bytes == 0)
		return 0;

	w->result.bytes_pt += cpu->pt_bytes;
	w->result.n_cpus++;
	return perffile_write_aux(w->data, i, v.head - cpu->pt_bytes,
				  tsc_at(&source->facts, w->request->frozen_ns), bytes + gone,
				  cpu->pt_bytes);
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

static int add_object(struct writer *w, struct object *object)
{
	uint64_t size;
	int r;

	r = bundle_add_object(w->bundle, w->request->store_fd, object, &size);
	if (r < 0 || size == 0)
		return r;
	w->result.bytes += size;
	w->result.n_objects++;
	if (object->build_id.size > 0)
		return vec_push(&w->with_build_id, { object->path, &object->build_id });
	return 0;
}

/* Mark the object that the record maps. */
static void take_object(struct writer *w, const struct record *record)
{
	struct record_mmap2 mmap;

	if (record->header.type != PERF_RECORD_MMAP2 || record_get_mmap2(record, &mmap) < 0 ||
	    !map_get(&w->pids, mmap.pid))
		return;
	for (size_t i = 0; i < w->request->n_objects; i++)
		if (!w->taken[i] && object_matches(w->request->objects[i], &mmap))
			w->taken[i] = true;
}

static int add_objects(struct writer *w)
{
	int r;

	w->step = PTD_SNAPSHOT_OBJECTS;
	w->taken = calloc(w->request->n_objects + 1, sizeof(*w->taken));
	if (!w->taken)
		return -ENOMEM;
	for (size_t i = 0; i < w->request->tasks->n_spans; i++) {
		struct cursor c = w->request->tasks->spans[i];
		struct record record;

		while (record_next(&c, &record) == 0)
			take_object(w, &record);
	}
	for (size_t i = 0; i < w->request->n_objects; i++) {
		struct object *object = w->request->objects[i];

		if (!w->taken[i])
			continue;
		if (!object->name[0]) {
			w->result.n_missing++;
			continue;
		}
		if (cancelled(w))
			return -ECANCELED;
		r = add_object(w, object);
		if (r < 0)
			return r;
	}
	return 0;
}

static void put_objects_map(FILE *f, void *userdata)
{
	const struct writer *w = userdata;

	for (size_t i = 0; i < w->request->n_objects; i++) {
		const struct object *o = w->request->objects[i];

		if (!w->taken[i])
			continue;
		if (!o->name[0])
			fputc('-', f);
		else if (o->build_id.size > 0)
			fputs(o->name, f);
		else
			fprintf(f, "sha256:%s", o->name + strlen("sha256-"));
		fputc('\t', f);
		/* One line each, whatever the path: as in /proc/PID/maps. */
		for (const char *c = o->path; *c; c++)
			if (*c == '\n')
				fputs("\\012", f);
			else
				fputc(*c, f);
		fputc('\n', f);
	}
}

static void put_manifest(FILE *f, void *userdata)
{
	const struct writer *w = userdata;
	const struct snapshot_request *q = w->request;
	const struct source_facts *facts = &q->source->facts;
	const time_t seconds = (time_t)(q->frozen_realtime_ns / 1000000000);
	struct utsname host = {};
	struct tm tm;
	char created[32];

	(void)uname(&host);
	gmtime_r(&seconds, &tm);
	strftime(created, sizeof(created), "%Y-%m-%dT%H:%M:%S", &tm);

	fprintf(f, PTD_MANIFEST_FORMAT "=" PTD_SNAPSHOT_FORMAT "\n");
	fprintf(f, "id=%s\n", q->id);
	fprintf(f, "created=%s.%06" PRIu64 "Z\n", created, q->frozen_realtime_ns / 1000 % 1000000);
	fprintf(f, "clock_ns=%" PRIu64 "\n", q->frozen_ns);
	fprintf(f, PTD_MANIFEST_REALTIME_OFFSET "=%" PRId64 "\n",
		(int64_t)(q->frozen_realtime_ns - q->frozen_ns));
	fprintf(f, "host=%s\nkernel=%s\nmachine=%s\n", host.nodename, host.release, host.machine);
	fprintf(f, "recorder=ptd %s\nsource=%s\ncpuid=%s\n", PTD_VERSION, facts->name,
		facts->cpuid);
	fprintf(f, "pt_config=0x%" PRIx64 "\n", facts->attr_config);
	fprintf(f, "bytes=%" PRIu64 "\npt_bytes=%" PRIu64 "\n", w->result.bytes,
		w->result.bytes_pt);
	fprintf(f, "objects=%" PRIu32 "\nobjects_missing=%" PRIu32 "\n", w->result.n_objects,
		w->result.n_missing);
	fprintf(f, "sideband_lost=%" PRIu64 "\n", q->sideband_lost);
	fprintf(f, "cpus=%" PRIu32 "\n", w->result.n_cpus);

	for (uint32_t i = 0; i < q->source->n_cpus; i++) {
		const struct cpu *c = &w->cpus[i];

		if (c->pt_head == 0 && c->switches_newest == 0)
			continue;
		fprintf(f, "cpu.%u.bytes=%" PRIu64 "\ncpu.%u.head=%" PRIu64 "\n", i, c->pt_bytes, i,
			c->pt_head);
		fprintf(f, "cpu.%u.dropped=%" PRIu64 "\n", i, c->pt_dropped);
		fprintf(
		    f, "cpu.%u.switch_oldest_ns=%" PRIu64 "\ncpu.%u.switch_newest_ns=%" PRIu64 "\n",
		    i, c->switches_oldest, i, c->switches_newest);
		fprintf(f, "cpu.%u.switch_complete=%s\n", i, c->switches_cut ? "no" : "yes");
	}
}

/* --- all of it ------------------------------------------------------------------------------- */

static int write_data(struct writer *w)
{
	const uint32_t n_cpus = w->request->source->n_cpus;
	int r;

	w->step = PTD_SNAPSHOT_DATA;
	r = perffile_new(w->dir_fd, PTD_SNAPSHOT_DATA, &w->request->source->facts, &w->data);
	for (uint32_t i = 0; r == 0 && i < n_cpus; i++)
		r = copy_switches(w, i);
	if (r < 0)
		return r;
	write_records(w);
	for (uint32_t i = 0; r == 0 && i < n_cpus; i++)
		r = cancelled(w) ? -ECANCELED : write_pt(w, i);
	return r;
}

static int write_all(struct writer *w)
{
	char hash[SHA256_HEX_SIZE] = "";
	uint64_t size;
	int r;

	r = write_data(w);
	if (r == 0)
		r = add_parents(w);
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
	r = w.cpus ? bundle_new(dir_fd, &w.bundle) : -ENOMEM;
	if (r == 0)
		r = write_all(&w);
	for (uint32_t i = 0; w.cpus && i < request->source->n_cpus; i++)
		free(w.cpus[i].switches);
	free(w.cpus);
	free(w.taken);
	(void)perffile_free(w.data);
	(void)bundle_free(w.bundle);
	map_deinit(&w.pids);
	vec_deinit(&w.with_build_id);

	if (r < 0)
		*reterr_what = w.step;
	else
		*ret_result = w.result;
	return r;
}
