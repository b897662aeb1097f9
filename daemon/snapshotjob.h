/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Snapshot job
 *
 * What has to be done for one job (daemon/snapshot/jobs.h): gather what the daemon knows, make
 * room, write the snapshot. It is made, gathers and ends in the event loop; the rest it does in the
 * job's thread, which touches nothing but what it was given.
 */

#include "base/base.h"
#include "daemon/retention.h"

struct config;
struct intake;
struct job;
struct source;
struct snapshotjob;

/* Whom the work asks and where it writes to. */
struct snapshotjob_context {
	const struct config *config; /* borrowed for the call, the others while the work is there */
	struct source *source;
	struct intake *intake;
	struct retention retention; /* the limits as they are now */
};

/*
 * Make ready what the job's thread needs, as @job->userdata.
 *
 * Return: 0, or negative errno; snapshotjob_free() is called in any case.
 */
_must_check_ int snapshotjob_new(struct job *job, const struct snapshotjob_context *context);

/* Free @job->userdata, if it has any. */
void snapshotjob_free(struct job *job);

/*
 * Take what is known by now, in place of what was known before: when the work is made, for the
 * estimate of the room it needs; and when the rings have been copied, so that whatever their PT ran
 * through has been told of.
 *
 * Return: 0, or -ENOMEM.
 */
_must_check_ int snapshotjob_gather(struct job *job);

/*
 * In the thread: write the snapshot.
 *
 * Return: 0 and @job->result; or negative errno and @job->message.
 */
_must_check_ int snapshotjob_run(struct job *job);
