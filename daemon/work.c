/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/work.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "daemon/config/config.h"
#include "daemon/intake.h"
#include "daemon/objects/jitfile.h"
#include "daemon/objects/keep.h"
#include "daemon/snapshot/jobs.h"
#include "daemon/snapshot/snapshot.h"
#include "daemon/tasks/sideband.h"

#define ROOM_RETRY (UINT64_C(256) << 20) /* to have free before a snapshot is tried again */

struct work {
	struct snapshot_request request;
	struct intake *intake; /* borrowed */
	struct room room;

	/* What the thread asks of the event loop by jobs_gather(): to shed so many bytes of copies
	 * in the store if that is not 0, else to gather. */
	uint64_t to_shed, shed_least;
	uint64_t n_shed; /* bytes that became free */

	/* Gathered. */
	struct snapshot_known known;
	struct sideband_view view;
	struct object **objects;
	struct jitfile *jitfiles;
};

static void forget_known(struct work *work)
{
	sideband_view_deinit(&work->view);
	for (size_t i = 0; i < work->known.n_objects; i++)
		(void)object_unref(work->objects[i]);
	free(work->objects);
	jitfiles_list_free(work->jitfiles, work->known.n_jitfiles);
	work->known = (struct snapshot_known){};
	work->view = (struct sideband_view){};
	work->objects = NULL;
	work->jitfiles = NULL;
}

int work_gather(struct job *job)
{
	struct work *work = job->work;
	struct sideband *sideband = intake_sideband(work->intake);
	int r;

	forget_known(work);
	if (work->to_shed > 0) {
		work->n_shed = intake_shed(work->intake, work->to_shed, work->shed_least);
		work->to_shed = 0;
		return 0;
	}
	intake_drain(work->intake);
	r = sideband_view_init(sideband, &work->view);
	if (r == 0)
		r = keep_list(work->room.keep, &work->objects, &work->known.n_objects);
	if (r == 0)
		r = jitfiles_list(intake_jitfiles(work->intake), &work->jitfiles,
				  &work->known.n_jitfiles);
	if (r < 0)
		return r;
	work->known.tasks = &work->view;
	work->known.objects = work->objects;
	work->known.jitfiles = work->jitfiles;
	work->known.code = intake_code(work->intake);
	work->known.sideband_lost = sideband_stats(sideband).lost;
	return 0;
}

/* In the thread, when the rings have been copied. */
static int ask_known(void *userdata, struct snapshot_known *ret_known)
{
	struct job *job = userdata;
	const struct work *work = job->work;
	int r;

	r = jobs_gather(job);
	if (r == 0)
		*ret_known = work->known;
	return r;
}

int work_new(struct job *job, const struct work_means *means)
{
	struct work *work = malloc(sizeof(*work));

	if (!work)
		return -ENOMEM;
	*work = (struct work){
		.request = {
			.id = job->id,
			.source = means->source,
			.keep = means->room.keep,
			.store_fd = spool_store_fd(means->room.spool),
			.scope = job->scope,
			.caller = &job->caller,
			.jit_max = means->config->jit_max,
			.mem_max = means->config->mem_max,
			.cancel = &job->cancel,
			.gather = ask_known,
			.userdata = job,
		},
		.intake = means->intake,
		.room = means->room,
	};
	job->work = work;
	/* For the estimate, and so that there is less to do when it counts. */
	return work_gather(job);
}

void work_free(struct job *job)
{
	struct work *work = job->work;

	if (work)
		forget_known(work);
	free(work);
	job->work = NULL;
}

static int write_snapshot(struct job *job, const char **reterr_what)
{
	struct work *work = job->work;
	struct spool *spool = work->room.spool;
	_cleanup_(fd_closep) int dir = -1;
	int r;

	*reterr_what = "directory";
	r = spool_begin(spool, job->id, &dir);
	if (r == 0)
		r = snapshot_write(&work->request, dir, &job->result, reterr_what);
	if (r == 0) {
		*reterr_what = "directory";
		r = spool_commit(spool, job->id, dir);
	}
	if (r < 0)
		spool_abort(spool, job->id);
	return r;
}

/* Objects are the event loop's. What is known is forgotten meanwhile. */
static uint64_t shed(uint64_t bytes, uint64_t least, void *userdata)
{
	struct job *job = userdata;
	struct work *work = job->work;

	work->to_shed = bytes;
	work->shed_least = least;
	return jobs_gather(job) == 0 ? work->n_shed : 0;
}

static void enforce_limits(struct job *job)
{
	struct work *work = job->work;
	int r;

	r = room_trim(&work->room, shed, job);
	if (r < 0) {
		errno = -r;
		log_warning("cannot remove old snapshots, ignoring: %m");
	}
}

/* No other thread links to the store, so it may be swept. If it is not known that there will be
 * room, nothing was removed, and it is tried all the same: there may be less to write. */
static int write_in_room(struct job *job, struct diskuse_room *needed, const char **reterr_what)
{
	struct work *work = job->work;
	int r;

	*reterr_what = "directory";
	r = room_make(&work->room, needed, shed, job);
	if (r == 0 || r == -ENOSPC)
		r = write_snapshot(job, reterr_what);
	if (r != -ENOSPC)
		return r;
	/* More was written than foreseen, or others filled the disk meanwhile. */
	needed->bytes += ROOM_RETRY;
	if (room_make(&work->room, needed, shed, job) == 0)
		return write_snapshot(job, reterr_what);
	needed->bytes -= ROOM_RETRY;
	return r;
}

static void say_no_room(struct job *job, const struct diskuse_room *needed)
{
	const struct work *work = job->work;
	struct diskuse_room available = {};

	(void)!spool_free_room(work->room.spool, &available);
	(void)snprintf(job->message, sizeof(job->message),
		       "there is no room for snapshot %s under %s: it may take %.1f MiB, %.1f MiB "
		       "are free, and removing old snapshots would not help (the newest one and "
		       "those that are kept stay)",
		       job->id, spool_path(work->room.spool), (double)needed->bytes / (1 << 20),
		       (double)available.bytes / (1 << 20));
}

int work_do(struct job *job)
{
	struct work *work = job->work;
	struct diskuse_room needed = snapshot_estimate(&work->request, &work->known);
	const char *what;
	int r;

	r = write_in_room(job, &needed, &what);
	if (r == 0)
		enforce_limits(job);
	else if (r == -ENOSPC)
		say_no_room(job, &needed);
	else if (r == -ESRCH)
		(void)snprintf(job->message, sizeof(job->message),
			       "process %" PRIu32 " did not run as far back as the rings go",
			       job->scope.pid);
	else
		(void)snprintf(job->message, sizeof(job->message),
			       "cannot write %s of snapshot %s under %s: %s", what, job->id,
			       spool_path(work->room.spool), strerror(-r));
	return r;
}
