/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Jobs
 *
 * Snapshots are taken one at a time, each written by a thread of its own while the event loop goes
 * on. Those that were asked for meanwhile wait in a queue with a limit. A job belongs to nobody but
 * the queue: it is done whether or not the client that asked for it is still there.
 */

#include <stdatomic.h>
#include <stdbool.h>

#include "base/base.h"
#include "daemon/proc/caller.h"
#include "daemon/snapshot/snapshot.h"
#include "daemon/spool/spool.h"

#define JOBS_WAITING_MAX  8u
#define JOBS_FINISHED_MAX 32u /* whose results are remembered */

struct jobs;
typedef struct sd_event sd_event;

struct job {
	struct jobs *jobs; /* borrowed: the queue */
	char id[SNAPID_SIZE];
	struct scope scope;
	struct caller caller; /* who asked for it */
	bool done;
	int error; /* negative errno if it failed */
	char message[512];
	struct snapshot_result result;
	void *userdata; /* of the owner, from prepare() to finish() */
	atomic_bool cancel;
};

/* The owner's part. run() runs in the thread, the others in the event loop. */
struct jobs_ops {
	/* Make ready what run() needs. Return: 0, or negative errno: the job has failed. */
	int (*prepare)(struct job *job, void *userdata);

	/* What run() asks for by jobs_gather(). Return: 0, or negative errno, which it is
	 * given. */
	int (*gather)(struct job *job, void *userdata);

	/* Fill in @job->result, or return negative errno and fill in @job->message. */
	int (*run)(struct job *job);

	/* The job is done, one way or the other: release @job->userdata, tell who waits. */
	void (*finish)(struct job *job, void *userdata);
};

_must_check_ int jobs_new(sd_event *event, const struct jobs_ops *ops, void *userdata,
			  struct jobs **ret_jobs);

/* Give up the one that runs, and wait for it. */
struct jobs *jobs_free(struct jobs *jobs);

DEFINE_CLEANUP(struct jobs *, jobs_free);

/* Ask for a job called @id; @scope, which may be NULL: of all, and @caller are copied. Return: 0,
 * -EBUSY if too many wait, or negative errno. */
_must_check_ int jobs_add(struct jobs *jobs, const char *id, const struct scope *scope,
			  const struct caller *caller);

/*
 * For run(), in the thread: have gather() run in the event loop.
 *
 * Return: what it returned; or -ECANCELED if the job was given up.
 */
_must_check_ int jobs_gather(struct job *job);

/* Return: the job, as long as it is remembered; it is the queue's. NULL if there is none. */
const struct job *jobs_find(const struct jobs *jobs, const char *id);

/* Those that are not done. */
unsigned jobs_pending(const struct jobs *jobs);
