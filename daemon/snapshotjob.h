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

struct config;
struct intake;
struct job;
struct jobs_ops;
struct retention;
struct source;

/* What snapshot jobs read, and where they write to. All of it is borrowed while the queue lives. */
struct snapshotjob_context {
	const struct config *config;
	struct source *source;
	struct intake *intake;
	const struct retention *retention; /* with the present limits */
	const char *runtime_dir;
	void (*finish)(struct job *job, void *userdata); /* called last, as of struct jobs_ops */
	void *userdata;
};

/* What the queue calls; its userdata is a struct snapshotjob_context. */
extern const struct jobs_ops snapshotjob_ops;
