/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/work.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "daemon/config.h"
#include "daemon/intake.h"
#include "daemon/jitfile.h"
#include "daemon/jobs.h"
#include "daemon/keep.h"
#include "daemon/sideband.h"
#include "daemon/snapshot.h"

#define ROOM_RETRY (UINT64_C(256) << 20) /* to have free before a snapshot is tried again */

struct work {
	struct snapshot_request request;
	struct intake *intake; /* borrowed */
	struct room room;

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

/* Old snapshots go when they must. No other thread links to the store, so it may be swept. */
static int write_in_room(struct job *job, const char **reterr_what)
{
	struct work *work = job->work;
	const uint64_t needed = snapshot_estimate(&work->request, &work->known);
	size_t n_removed;
	int r;

	*reterr_what = "directory";
	r = room_make(&work->room, needed, 1, &n_removed);
	if (r == 0)
		r = write_snapshot(job, reterr_what);
	/* More was written than foreseen, or others filled the disk meanwhile. */
	if (r == -ENOSPC && room_make(&work->room, needed + ROOM_RETRY, 0, &n_removed) == 0 &&
	    n_removed > 0)
		r = write_snapshot(job, reterr_what);
	return r;
}

int work_do(struct job *job)
{
	struct work *work = job->work;
	const char *what;
	int r;

	r = write_in_room(job, &what);
	if (r == -ESRCH)
		(void)snprintf(job->message, sizeof(job->message),
			       "process %" PRIu32 " did not run as far back as the rings go",
			       job->scope.pid);
	else if (r < 0)
		(void)snprintf(job->message, sizeof(job->message),
			       "cannot write %s of snapshot %s under %s: %s", what, job->id,
			       spool_path(work->room.spool), strerror(-r));
	return r;
}
