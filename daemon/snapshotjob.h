/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Snapshot job
 *
 * What is done for one entry of the queue of snapshots (daemon/snapshot/jobs.h): gather what the
 * daemon knows, make room on the disk, write the snapshot, enforce the limits. A snapshot job is
 * made, gathers and ends in the event loop. It runs in the job's thread, which uses only what the
 * event loop gave it.
 */

#include "base/base.h"
#include "daemon/retention/retention.h"

struct config;
struct intake;
struct job;
struct snapshotjob;
struct source;

/* What the snapshot job reads, and where it writes to. */
struct snapshotjob_context {
	const struct config *config; /* borrowed for the call */
	struct source *source;       /* borrowed while the snapshot job lives */
	struct intake *intake;       /* borrowed while the snapshot job lives */
	struct retention retention;  /* with the present limits */
	const char *runtime_dir;     /* borrowed while the snapshot job lives */
};

/*
 * Prepare @job->userdata for the job's thread.
 *
 * Return: 0, or negative errno. snapshotjob_free() is to be called in both cases.
 */
_must_check_ int snapshotjob_new(struct job *job, const struct snapshotjob_context *context);

/* Free @job->userdata, if there is any. */
void snapshotjob_free(struct job *job);

/*
 * Replace what was gathered by what is known now, or do what else the job's thread asks for. This
 * is done when the rings have been copied, so that the records explain all PT in the rings.
 *
 * Return: 0, or negative errno.
 */
_must_check_ int snapshotjob_gather(struct job *job);

/*
 * Write the snapshot. To be called in the job's thread.
 *
 * Return: 0 and @job->result; or negative errno and @job->message.
 */
_must_check_ int snapshotjob_run(struct job *job);
