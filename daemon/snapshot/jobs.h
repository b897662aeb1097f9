/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Jobs
 *
 * A queue of snapshots to be taken. They are taken one at a time, each by a thread of its own,
 * while the event loop goes on. The others wait, up to a limit. Users take turns, and each has a
 * share of the places (daemon/share/share.h): if there is no place for a user who has his share not
 * yet, the newest job of the user who has most fails. Otherwise a job belongs to the queue alone:
 * it is done whether or not the client that asked for it is still connected.
 *
 * A user's own snapshots (scope.is_own), which anybody may ask for, come after all others. They
 * take no places: who adds them limits their number. One that runs is cancelled when another
 * snapshot is asked for, and begins again when that is done, however often: nobody waits for what a
 * user has because that user asks for it. There may be a pause between two of the same user, as
 * long as which the later one waits. Their results are not remembered.
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
#define JOBS_LATER        1   /* returned by gather() */

struct jobs;
struct share;
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
	void *userdata; /* of the owner of the queue, from prepare() to put_back() or finish() */
	atomic_bool cancel;
};

/* What the owner of the queue does for a job: run() in the thread, the others in the event loop. */
struct jobs_ops {
	/* Make ready what run() needs. Return: 0; or negative errno, and the job has failed. */
	int (*prepare)(struct job *job, void *userdata);

	/* Do what run() asks for by jobs_gather(). Return: 0, or negative errno; run() gets it. Or
	 * JOBS_LATER: jobs_answer() is going to say what run() gets, unless the job is cancelled
	 * first. */
	int (*gather)(struct job *job, void *userdata);

	/* Return: 0 with @job->result, or negative errno with @job->message. */
	int (*run)(struct job *job);

	/* The job, a user's own, was cancelled, and will be prepared again: release
	 * @job->userdata. */
	void (*put_back)(struct job *job, void *userdata);

	/* The job is done or has failed: release @job->userdata, and answer who waits for it. */
	void (*finish)(struct job *job, void *userdata);
};

/* @event, @ops and @userdata are borrowed. Return: 0, or negative errno. */
_must_check_ int jobs_new(sd_event *event, const struct jobs_ops *ops, void *userdata,
			  struct jobs **ret_jobs);

/* Cancel the job that runs, wait for it, and free the queue. All jobs are finished. */
struct jobs *jobs_free(struct jobs *jobs);

DEFINE_CLEANUP(struct jobs *, jobs_free);

/* Let that much time be between the beginnings of a user's own snapshots. */
void jobs_set_own_pause(struct jobs *jobs, uint64_t us);

/*
 * Append a job called @id. All is copied.
 *
 * @scope: NULL: all that is recorded
 *
 * Return: 0; -EBUSY if too many wait, or too many of that user; or another negative errno.
 */
_must_check_ int jobs_add(struct jobs *jobs, const char *id, const struct scope *scope,
			  const struct caller *caller);

/*
 * For run(), in the thread: have gather() run in the event loop, and wait for it.
 *
 * Return: what gather() returned; or -ECANCELED if the job was cancelled.
 */
_must_check_ int jobs_gather(struct job *job);

/* Have the job that runs, and for which gather() returned JOBS_LATER, go on. A job that was
 * cancelled has gone on already. */
void jobs_answer(struct jobs *jobs, int error);

/* Return: the job, which is the queue's, as long as it is remembered; NULL if there is none. */
const struct job *jobs_find(const struct jobs *jobs, const char *id);

/* Get a copy of the account of jobs that wait. */
void jobs_get_share(const struct jobs *jobs, struct share *ret_share);

/* Return: how many jobs are not done. */
unsigned jobs_pending(const struct jobs *jobs);

/* Return: whether no job runs, and none waits but users' own ones, of which some may wait for the
 * end of a pause all the time. */
bool jobs_are_idle(const struct jobs *jobs);
