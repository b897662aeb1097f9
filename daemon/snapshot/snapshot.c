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

#include "daemon/objects/codestore.h"
#include "daemon/objects/jitfile.h"
#include "daemon/objects/objectstore.h"
#include "daemon/proc/caller.h"
#include "daemon/snapshot/bundle.h"
#include "daemon/snapshot/kernelcode.h"
#include "daemon/snapshot/livecode.h"
#include "daemon/snapshot/perffile.h"
#include "daemon/snapshot/snapdata.h"
#include "daemon/snapshot/taken.h"
#include "daemon/source/source.h"
#include "daemon/spool/storedir.h"
#include "daemon/tasks/sideband.h"
#include "ptd/snapshot.h"
#include "record/cancel.h"
#include "record/record.h"
#include "util/dirs.h"
#include "util/map.h"
#include "util/vec.h"

/* For the estimate. */
#define BLOCK_SIZE  4096u
#define FILES_MIN   32u /* with a manifest, lists of objects, and the like */
#define KERNEL_SIZE (UINT64_C(48) << 20)

struct writer {
	const struct snapshot_request *request;
	int dir_fd;
	struct snapdata data;
	struct bundle *bundle;
	struct taken *taken; /* of data.known.objects */
	VEC(struct perffile_object) with_build_id;
	struct snapshot_result result;
	const char *step; /* for messages */

	/* What was kept of code that is in no file, and what not: lines of the manifest. */
	char *notes;
	size_t notes_size;
	FILE *notes_stream;
};

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

	r = taken_new(w->data.known.objects, w->data.known.n_objects, &w->taken);
	for (size_t i = 0; r == 0 && i < w->data.known.tasks->n_spans; i++) {
		struct cursor c = w->data.known.tasks->spans[i];
		struct record_mmap2 mmap;
		struct record record;

		while (r == 0 && record_next(&c, &record) == 0)
			if (record.header.type == PERF_RECORD_MMAP2 &&
			    record_get_mmap2(&record, &mmap) == 0 &&
			    map_get(&w->data.pids, mmap.pid))
				r = taken_add(w->taken, &mmap);
	}
	return r == 0 ? taken_settle(w->taken, w->request->store, w->request->cancel) : r;
}

static int add_objects(struct writer *w)
{
	const struct object *object;
	bool by_content;
	size_t at = 0;
	int r;

	w->step = PTD_SNAPSHOT_OBJECTS;
	r = take_objects(w);
	if (r == 0)
		w->result.n_missing = (uint32_t)taken_n_missing(w->taken);
	while (r == 0 && (object = taken_next(w->taken, &at, &by_content)))
		r = cancel_asked(w->request->cancel) ? -ECANCELED
						     : add_object(w, object, by_content);
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

	snapdata_print_clock(&w->data, f);
}

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

static void put_manifest(FILE *f, void *userdata)
{
	const struct writer *w = userdata;
	const struct snapshot_request *q = w->request;
	const struct source_facts *facts = &w->data.facts;
	struct utsname host = {};

	(void)uname(&host);
	fprintf(f, PTD_MANIFEST_FORMAT "=" PTD_SNAPSHOT_FORMAT "\n");
	fprintf(f, "id=%s\n", q->id);
	print_time(f, "created", w->data.moment.realtime_ns);
	fprintf(f, "clock_ns=%" PRIu64 "\n", w->data.moment.ns);
	fprintf(f, PTD_MANIFEST_REALTIME_OFFSET "=%" PRId64 "\n",
		(int64_t)(w->data.moment.realtime_ns - w->data.moment.ns));
	fprintf(f, PTD_MANIFEST_MONOTONIC_OFFSET "=%" PRId64 "\n",
		(int64_t)(w->data.moment.ns - w->data.moment.monotonic_ns));
	fprintf(f, "host=%s\nkernel=%s\nmachine=%s\n", host.nodename, host.release, host.machine);
	fprintf(f, "recorder=ptd %s\nsource=%s\ncpuid=%s\n", PTD_VERSION, facts->name,
		facts->cpuid);
	fprintf(f, "taken_by_uid=%" PRIuMAX "\ntaken_by_pid=%" PRIdMAX "\ntaken_by_comm=%s\n",
		(uintmax_t)q->caller->uid, (intmax_t)q->caller->pid, q->caller->comm);
	fprintf(f, "pt_config=0x%" PRIx64 "\n", facts->attr_config);
	fprintf(f, "bytes=%" PRIu64 "\npt_bytes=%" PRIu64 "\n", w->result.bytes,
		w->result.bytes_pt);
	fprintf(f, PTD_MANIFEST_DROPPED "=%" PRIu64 "\n", w->data.bytes_dropped);
	fprintf(f, PTD_MANIFEST_OVERWRITTEN "=%" PRIu64 "\n", w->data.bytes_overwritten);
	if (w->data.complete_since > 0) {
		print_time(f, "complete_since",
			   w->data.complete_since - w->data.moment.ns + w->data.moment.realtime_ns);
		fprintf(f, PTD_MANIFEST_COMPLETE_SINCE "=%" PRIu64 "\n", w->data.complete_since);
	}
	fprintf(f, "objects=%" PRIu32 "\nobjects_missing=%" PRIu32 "\n", w->result.n_objects,
		w->result.n_missing);
	if (q->scope.started_ns > 0)
		fprintf(f, PTD_MANIFEST_COMMAND_COMPLETE "=%s\n",
			w->result.complete_since_ns > q->scope.started_ns ? "no" : "yes");
	scope_print(&q->scope, &w->data.ran, f);
	fprintf(f, "sideband_lost=%" PRIu64 "\n", w->data.known.sideband_lost);
	(void)fflush(w->notes_stream);
	(void)fwrite(w->notes, 1, w->notes_size, f);
	fprintf(f, PTD_MANIFEST_SIDEBAND_SINCE "=%" PRIu64 "\n", w->data.known.tasks->since_ns);
	fprintf(f, "cpus=%" PRIu32 "\n", w->result.n_cpus);
	for (uint32_t i = 0; i < q->source->n_cpus; i++)
		cpucopy_print(&w->data.cpus[i], i, f);
}

/* --- the kernel's code ------------------------------------------------------------------------ */

static int put_record(void *userdata, const void *bytes, size_t size)
{
	const struct writer *w = userdata;

	perffile_write(w->data.file, bytes, size);
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
	_cleanup_(fd_closep) int dir_fd = -1, proc_fd = -1;
	const char *why = NULL;
	struct kernelcode code;
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
	r = kernelcode_write(proc_fd, dir_fd, put_record, w, &code, &why);
	if (why) {
		fprintf(w->notes_stream, "kernel_code=refused: %s\n", why);
		return dirs_remove(w->dir_fd, PTD_SNAPSHOT_KCORE_DIR);
	}
	if (r == 0)
		r = sum_kernel(w);
	if (r < 0)
		return r;
	fprintf(w->notes_stream, "kernel_code=%" PRIu64 "\n", code.bytes);
	if (code.n_left_out > 0)
		fprintf(w->notes_stream, "kernel_code_left_out=%zu\n", code.n_left_out);
	w->result.bytes += code.bytes;
	return 0;
}

/* --- all of it ------------------------------------------------------------------------------- */

static int write_data(struct writer *w)
{
	int r;

	w->step = PTD_SNAPSHOT_DATA;
	r = snapdata_init(&w->data, w->request, w->dir_fd);
	if (r == 0)
		r = snapdata_write_rings(&w->data);
	/* Before the records: what changed between the rings and the copy is told by them. */
	if (r == 0)
		r = add_kernel(w);
	if (r == 0) {
		w->step = PTD_SNAPSHOT_DATA;
		r = snapdata_write_records(&w->data);
	}
	w->result.bytes_pt = w->data.bytes_pt;
	w->result.bytes_overwritten = w->data.bytes_overwritten;
	w->result.taken_ns = w->data.moment.monotonic_ns;
	if (w->data.complete_since > 0)
		w->result.complete_since_ns =
		    w->data.complete_since - w->data.moment.ns + w->data.moment.monotonic_ns;
	w->result.n_cpus = w->data.n_cpus;
	return r;
}

static int add_livecode(struct writer *w)
{
	struct livecode code = {
		.request = w->request,
		.known = &w->data.known,
		.dir_fd = w->dir_fd,
		.bundle = w->bundle,
		.pids = &w->data.pids,
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
	r = snapdata_finish(&w->data, w->with_build_id.items, w->with_build_id.n);
	if (r == 0)
		r = bundle_add_sum(w->bundle, PTD_SNAPSHOT_DATA, hash, &size);
	if (r < 0)
		return r;
	w->result.bytes += size;

	w->step = PTD_SNAPSHOT_OBJECTS_MAP;
	r = bundle_add_file(w->bundle, w->step, put_objects_map, w);
	if (r < 0)
		return r;
	if (w->data.clock) {
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

	w.notes_stream = open_memstream(&w.notes, &w.notes_size);
	r = w.notes_stream ? bundle_new(dir_fd, request->cancel, &w.bundle) : -ENOMEM;
	if (r == 0)
		r = write_all(&w);
	snapdata_deinit(&w.data);
	if (w.notes_stream)
		(void)fclose(w.notes_stream);
	free(w.notes);
	(void)taken_free(w.taken);
	(void)bundle_free(w.bundle);
	vec_deinit(&w.with_build_id);

	if (r < 0)
		*reterr_what = w.step;
	else
		*ret_result = w.result;
	return r;
}

/* Memory that may be kept, zeros or not, or the code that ran. */
static uint64_t estimate_memory(const struct snapshot_request *request,
				const struct snapshot_known *known)
{
	const struct sideband_view *tasks = known->tasks;
	uint64_t bytes = known->code ? codestore_size(known->code) : 0;

	for (size_t i = 0; !known->code && i < tasks->n_ranges; i++)
		bytes += tasks->ranges[i].vdso ? 0 : tasks->ranges[i].size;
	return bytes < request->mem_max ? bytes : request->mem_max;
}

static uint64_t estimate_jitfiles(const struct snapshot_request *request,
				  const struct snapshot_known *known)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < known->n_jitfiles; i++)
		bytes += known->jitfiles[i].reason ? 0 : known->jitfiles[i].size;
	return bytes < request->jit_max ? bytes : request->jit_max;
}

struct diskuse_amount snapshot_estimate(const struct snapshot_request *request,
					const struct snapshot_known *known)
{
	/* An object is a link in a folder of its own, three deep. */
	const uint64_t n_files = FILES_MIN + 3 * known->n_objects + known->n_jitfiles;
	uint64_t bytes = known->ring_bytes;

	for (size_t i = 0; i < known->tasks->n_spans; i++)
		bytes += cursor_left(&known->tasks->spans[i]);
	bytes += estimate_memory(request, known) + estimate_jitfiles(request, known);
	bytes += request->source->facts.kernel ? KERNEL_SIZE : 0;
	return (struct diskuse_amount){
		.bytes = bytes + n_files * BLOCK_SIZE,
		.inodes = n_files + known->tasks->n_ranges,
	};
}
