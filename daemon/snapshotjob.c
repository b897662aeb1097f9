/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/snapshotjob.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cursor.h"
#include "base/log.h"
#include "daemon/config/config.h"
#include "daemon/intake.h"
#include "daemon/objects/codestore.h"
#include "daemon/objects/jitfile.h"
#include "daemon/objects/objectstore.h"
#include "daemon/retention/retention.h"
#include "daemon/sideband/sideband.h"
#include "daemon/snapshot/jobs.h"
#include "daemon/snapshot/snapshot.h"
#include "daemon/source/kept.h"
#include "daemon/source/source.h"
#include "daemon/spool/diskuse.h"

/* --- estimate --------------------------------------------------------------------------------- */

/* How much room a snapshot will need, before it is written. */

struct snapshot_known;
struct snapshot_request;

#define BLOCK_SIZE  4096u
#define FILES_MIN   32u /* with a manifest, lists of objects, and the like */
#define KERNEL_SIZE (UINT64_C(48) << 20)

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

/*
 * Return: the disk space that the snapshot will need, as a rule at most: a scope may leave out most
 * of it. What the snapshot only links to is not counted.
 */
static struct diskuse_amount estimate_snapshot(const struct snapshot_request *request,
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

/* --- snapshot job ----------------------------------------------------------------------------- */

/* Bytes to have free in addition before a snapshot is tried again. */
#define ROOM_RETRY (UINT64_C(256) << 20)

struct snapshotjob {
	struct snapshot_request request;
	struct intake *intake; /* borrowed */
	struct retention retention;

	/* What the thread requests from the event loop with jobs_gather(): to evict that many bytes
	 * of copies if @to_evict is not 0, otherwise to gather. */
	uint64_t to_evict, evict_least;
	uint64_t n_evicted; /* bytes that became free */

	/* Gathered. */
	struct snapshot_known known;
	struct sideband_view view;
	struct object **objects;
	struct jitfile *jitfiles;
};

static void forget_known(struct snapshotjob *self)
{
	sideband_view_deinit(&self->view);
	for (size_t i = 0; i < self->known.n_objects; i++)
		(void)object_unref(self->objects[i]);
	free(self->objects);
	jitfiles_list_free(self->jitfiles, self->known.n_jitfiles);
	self->known = (struct snapshot_known){};
	self->view = (struct sideband_view){};
	self->objects = NULL;
	self->jitfiles = NULL;
}

static int gather_known(struct snapshotjob *self)
{
	struct sideband *sideband = intake_sideband(self->intake);
	struct source *source = self->request.source;
	int r;

	forget_known(self);
	intake_drain(self->intake);
	r = sideband_view_init(sideband, &self->view);
	if (r == 0)
		r = objectstore_list(self->retention.store, &self->objects, &self->known.n_objects);
	if (r == 0)
		r = jitfiles_list(intake_jitfiles(self->intake), &self->jitfiles,
				  &self->known.n_jitfiles);
	if (r < 0)
		return r;
	self->known.tasks = &self->view;
	self->known.objects = self->objects;
	self->known.jitfiles = self->jitfiles;
	self->known.code = intake_code(self->intake);
	self->known.ring_bytes = source->ops->status(source).bytes_held;
	self->known.sideband_lost =
	    sideband_stats(sideband).lost + source->ops->status(source).n_tasks_lost;
	self->known.n_unread = source->ops->status(source).n_unread;
	if (source->kept) {
		self->known.taken_over_ns = kept_draft(source->kept)->taken_over_ns;
		self->known.code_lost_bytes = kept_draft(source->kept)->code_lost_bytes;
	}
	return 0;
}

/*
 * Replace what was gathered by what is known now, or do what else the job's thread asks for. This
 * is done when the rings have been copied, so that the records explain all PT in the rings.
 */
static int gather(struct job *job, void *userdata)
{
	struct snapshotjob *self = job->userdata;

	if (self->to_evict > 0) {
		forget_known(self);
		self->n_evicted = intake_evict(self->intake, self->to_evict, self->evict_least);
		self->to_evict = 0;
		return 0;
	}
	return gather_known(self);
}

/* Called in the thread when the rings have been copied. */
static int ask_known(void *userdata, struct snapshot_known *ret_known)
{
	struct job *job = userdata;
	const struct snapshotjob *self = job->userdata;
	int r;

	r = jobs_gather(job);
	if (r == 0)
		*ret_known = self->known;
	return r;
}

static int prepare(struct job *job, void *userdata)
{
	const struct snapshotjob_context *context = userdata;
	struct snapshotjob *self = malloc(sizeof(*self));

	if (!self)
		return -ENOMEM;
	*self = (struct snapshotjob){
		.request = {
			.id = job->id,
			.source = context->source,
			.copier = objectstore_copier(context->retention->store),
			.store_fd = spool_store_fd(context->retention->spool),
			.runtime_dir = context->runtime_dir,
			.scope = job->scope,
			.caller = &job->caller,
			.jit_max = context->config->jit_max,
			.mem_max = context->config->mem_max,
			.cancel = &job->cancel,
			.gather = ask_known,
			.userdata = job,
		},
		.intake = context->intake,
		.retention = *context->retention,
	};
	job->userdata = self;
	/* This is for the estimate, and leaves less to do later, when time matters. */
	return gather_known(self);
}

static void finish(struct job *job, void *userdata)
{
	const struct snapshotjob_context *context = userdata;
	struct snapshotjob *self = job->userdata;

	if (self)
		forget_known(self);
	free(self);
	job->userdata = NULL;
	context->finish(job, context->userdata);
}

static int write_snapshot(struct job *job, const char **reterr_what)
{
	struct snapshotjob *self = job->userdata;
	struct spool *spool = self->retention.spool;
	_cleanup_(fd_closep) int dir = -1;
	int r;

	*reterr_what = "directory";
	r = spool_begin(spool, job->id, &dir);
	if (r == 0)
		r = retention_get_max(&self->retention, &self->request.snapshots_max);
	self->request.snapshots_taken = *self->retention.taken;
	if (r == 0)
		r = snapshot_write(&self->request, dir, &job->result, reterr_what);
	if (r == 0) {
		*reterr_what = "directory";
		r = spool_commit(spool, job->id, dir);
	}
	if (r < 0)
		spool_abort(spool, job->id);
	return r;
}

/* Objects belong to the event loop, which forgets what was gathered meanwhile. */
static uint64_t evict_copies(uint64_t bytes, uint64_t least, void *userdata)
{
	struct job *job = userdata;
	struct snapshotjob *self = job->userdata;

	self->to_evict = bytes;
	self->evict_least = least;
	return jobs_gather(job) == 0 ? self->n_evicted : 0;
}

static void enforce_limits(struct job *job)
{
	struct snapshotjob *self = job->userdata;
	int r;

	r = retention_enforce(&self->retention, true, evict_copies, job);
	if (r < 0)
		(void)log_warning_errno(r, "cannot remove old snapshots, ignoring: %m");
}

/* No other thread links to copies, so the store may be swept. If it is not known that there will be
 * enough room, nothing was removed, and the snapshot is tried all the same: there may be less to
 * write. */
static int write_in_room(struct job *job, struct diskuse_amount *needed, const char **reterr_what)
{
	struct snapshotjob *self = job->userdata;
	int r;

	*reterr_what = "directory";
	r = retention_make_room(&self->retention, needed, evict_copies, job);
	if (r == 0 || r == -ENOSPC)
		r = write_snapshot(job, reterr_what);
	if (r != -ENOSPC)
		return r;
	/* More was written than estimated, or other programs filled the disk meanwhile. */
	needed->bytes += ROOM_RETRY;
	if (retention_make_room(&self->retention, needed, evict_copies, job) == 0)
		return write_snapshot(job, reterr_what);
	needed->bytes -= ROOM_RETRY;
	return r;
}

static void say_no_room(struct job *job, const struct diskuse_amount *needed)
{
	const struct snapshotjob *self = job->userdata;
	struct diskuse_amount available = {};

	(void)!spool_free_room(self->retention.spool, &available);
	(void)snprintf(
	    job->message, sizeof(job->message),
	    "there is no room for snapshot %s under %s: it may take %.1f MiB and %" PRIu64
	    " inodes, %.1f MiB and %" PRIu64 " inodes are free, and removing old "
	    "snapshots would not help (the newest one and those that are kept stay)",
	    job->id, spool_path(self->retention.spool), (double)needed->bytes / (1 << 20),
	    needed->inodes, (double)available.bytes / (1 << 20), available.inodes);
}

/* Nothing of the processes that are asked for is in the rings. */
static void say_nobody_ran(struct job *job, int r)
{
	if (r == -ENXIO)
		(void)snprintf(job->message, sizeof(job->message),
			       "there is no control group %.300s", job->scope.cgroup);
	else if (job->scope.cgroup[0])
		(void)snprintf(
		    job->message, sizeof(job->message),
		    "no process that is in control group %.300s now did run as far back as "
		    "the rings go",
		    job->scope.cgroup);
	else
		(void)snprintf(job->message, sizeof(job->message),
			       "process %" PRIu32 " did not run as far back as the rings go",
			       job->scope.pid);
}

static int run(struct job *job)
{
	struct snapshotjob *self = job->userdata;
	struct diskuse_amount needed = estimate_snapshot(&self->request, &self->known);
	const char *what;
	int r;

	r = write_in_room(job, &needed, &what);
	if (r == 0) {
		enforce_limits(job);
		return 0;
	}
	/* Old snapshots may have been removed for it. */
	(void)!retention_set_room(&self->retention);
	if (r == -ENOSPC)
		say_no_room(job, &needed);
	else if (r == -ENXIO || r == -ESRCH)
		say_nobody_ran(job, r);
	else
		(void)snprintf(job->message, sizeof(job->message),
			       "cannot write %s of snapshot %s under %s: %s", what, job->id,
			       spool_path(self->retention.spool), strerror(-r));
	return r;
}

const struct jobs_ops snapshotjob_ops = {
	.prepare = prepare,
	.gather = gather,
	.run = run,
	.finish = finish,
};
