/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Jobs
 *
 * A queue of snapshots to be taken. They are taken one at a time, in the order in which they were
 * asked for, each by a thread of its own while the event loop goes on. Up to JOBS_WAITING_MAX wait.
 * A job belongs to the queue alone: it is done whether or not the client that asked for it is still
 * connected.
 *
 * The event loop calls all functions but jobs_gather().
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
	struct jobs *jobs; /* the queue; borrowed */
	char id[SNAPID_SIZE];
	struct scope scope;
	struct caller caller; /* who asked for it */
	bool done;
	int error; /* negative errno if it failed */
	char message[512];
	struct snapshot_result result;
	void *userdata; /* of the owner of the queue, from prepare() to finish() */
	atomic_bool cancel;
};

/* What the owner of the queue does for a job: run() in the thread, the others in the event loop. */
struct jobs_ops {
	/* Make ready what run() needs. Return: 0; or negative errno, and the job has failed. */
	int (*prepare)(struct job *job, void *userdata);

	/* Do what run() asks for by jobs_gather(). Return: 0, or negative errno; run() gets it. */
	int (*gather)(struct job *job, void *userdata);

	/* Return: 0 with @job->result, or negative errno with @job->message. */
	int (*run)(struct job *job);

	/* The job is done or has failed: release @job->userdata, and answer who waits for it. */
	void (*finish)(struct job *job, void *userdata);
};

/* @event, @ops and @userdata are borrowed. Return: 0, or negative errno. */
_must_check_ int jobs_new(sd_event *event, const struct jobs_ops *ops, void *userdata,
			  struct jobs **ret_jobs);

/* Cancel the job that runs, wait for it, and free the queue. All jobs are finished. */
struct jobs *jobs_free(struct jobs *jobs);

DEFINE_CLEANUP(struct jobs *, jobs_free);

/*
 * Append a job called @id. All is copied.
 *
 * @scope: NULL: all that is recorded
 *
 * Return: 0; -EBUSY if too many wait; or another negative errno.
 */
_must_check_ int jobs_add(struct jobs *jobs, const char *id, const struct scope *scope,
			  const struct caller *caller);

/*
 * For run(), in the thread: have gather() run in the event loop, and wait for it.
 *
 * Return: what gather() returned; or -ECANCELED if the job was cancelled.
 */
_must_check_ int jobs_gather(struct job *job);

/* Return: the job, which is the queue's, as long as it is remembered; NULL if there is none. */
const struct job *jobs_find(const struct jobs *jobs, const char *id);

/* Return: how many jobs are not done. */
unsigned jobs_pending(const struct jobs *jobs);

/* Return: whether no job runs or waits. */
bool jobs_are_idle(const struct jobs *jobs);
