/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/snapshot/jobs.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <systemd/sd-event.h>

#include "util/mutex.h"
#include "util/quietthread.h"
#include "util/vec.h"

/* Of the thread, for gather(). */
enum asking {
	ASKING_NOTHING,
	ASKING,
	ASKING_ANSWERED,
	ASKING_IN_VAIN, /* the event loop is waiting for the thread to end */
};

struct jobs {
	const struct jobs_ops *ops;
	void *userdata;        /* borrowed */
	sd_event_source *kick; /* starts what waits */
	sd_event_source *wake; /* the thread is done, or asks */
	int wake_fd;
	bool running; /* the first job in the list that is not done has a thread */
	pthread_t thread;
	pthread_mutex_t lock; /* of the next four */
	pthread_cond_t answered;
	enum asking asking;
	int answer;
	bool ended; /* the thread has run its job */
	VEC(struct job *)
	list; /* finished ones first, then the running one, then in the order they came */
};

static struct job *first_pending(const struct jobs *j)
{
	for (size_t i = 0; i < j->list.n; i++)
		if (!j->list.items[i]->done)
			return j->list.items[i];
	return NULL;
}

unsigned jobs_pending(const struct jobs *jobs)
{
	unsigned n = 0;

	for (size_t i = 0; i < jobs->list.n; i++)
		n += !jobs->list.items[i]->done;
	return n;
}

bool jobs_are_idle(const struct jobs *jobs)
{
	return !first_pending(jobs);
}

static void forget_oldest(struct jobs *j)
{
	free(j->list.items[0]);
	j->list.n--;
	memmove(j->list.items, j->list.items + 1, j->list.n * sizeof(struct job *));
}

static void finish_job(struct jobs *j, struct job *job)
{
	job->done = true;
	j->ops->finish(job, j->userdata);

	/* Forget the oldest result when there are too many. */
	if (j->list.n - jobs_pending(j) > JOBS_FINISHED_MAX)
		forget_oldest(j);
}

/* --- the thread ------------------------------------------------------------------------------- */

static void *run_job(void *userdata)
{
	struct job *job = userdata;
	struct jobs *j = job->jobs;

	job->error = j->ops->run(job);
	(void)pthread_mutex_lock(&j->lock);
	j->ended = true;
	(void)pthread_mutex_unlock(&j->lock);
	(void)eventfd_write(j->wake_fd, 1);
	return NULL;
}

static int start_thread(struct jobs *j, struct job *job)
{
	int r;

	j->ended = false;
	r = quietthread_start(&j->thread, NULL, run_job, job);
	j->running = r == 0;
	return r;
}

/* Begin the next job, unless one runs. */
static int begin_next(struct jobs *j)
{
	struct job *job;
	int r;

	while (!j->running && (job = first_pending(j))) {
		r = j->ops->prepare(job, j->userdata);
		if (r == 0)
			r = start_thread(j, job);
		if (r < 0) {
			job->error = r;
			(void)snprintf(job->message, sizeof(job->message),
				       "cannot begin the snapshot: %s", strerror(-r));
			finish_job(j, job);
		}
	}
	return 0;
}

static int on_kick(sd_event_source *source, void *userdata)
{
	return begin_next(userdata);
}

int jobs_gather(struct job *job)
{
	struct jobs *j = job->jobs;

	HOLD(&j->lock);
	/* The canceling thread looks afterwards whether it asks. */
	if (j->asking == ASKING_NOTHING && !atomic_load(&job->cancel)) {
		j->asking = ASKING;
		(void)eventfd_write(j->wake_fd, 1);
		while (j->asking == ASKING)
			(void)pthread_cond_wait(&j->answered, &j->lock);
	}
	if (j->asking != ASKING_ANSWERED)
		return -ECANCELED;
	j->asking = ASKING_NOTHING;
	return j->answer;
}

/* Let the thread go on if it waits, with that answer. @in_vain: and never again */
static void answer_thread(struct jobs *j, int error, bool in_vain)
{
	HOLD(&j->lock);
	if (in_vain)
		j->asking = ASKING_IN_VAIN;
	else if (j->asking == ASKING)
		j->asking = ASKING_ANSWERED;
	j->answer = error;
	(void)pthread_cond_signal(&j->answered);
}

/* Return: whether the thread asks for something. */
static bool is_asked(struct jobs *j, bool *ret_ended)
{
	HOLD(&j->lock);
	*ret_ended = j->ended;
	return j->asking == ASKING;
}

static int on_wake(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct jobs *j = userdata;
	bool ended;
	eventfd_t n;

	(void)eventfd_read(fd, &n);
	if (is_asked(j, &ended)) {
		answer_thread(j, j->ops->gather(first_pending(j), j->userdata), false);
		return 0;
	}
	if (!j->running || !ended)
		return 0;
	(void)pthread_join(j->thread, NULL);
	j->running = false;
	finish_job(j, first_pending(j));
	return sd_event_source_set_enabled(j->kick, SD_EVENT_ONESHOT);
}

int jobs_new(sd_event *event, const struct jobs_ops *ops, void *userdata, struct jobs **ret_jobs)
{
	_cleanup_(jobs_freep) struct jobs *j = malloc(sizeof(*j));
	int r;

	if (!j)
		return -ENOMEM;
	*j = (struct jobs){
		.ops = ops,
		.userdata = userdata,
		.wake_fd = -1,
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.answered = PTHREAD_COND_INITIALIZER,
	};
	j->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (j->wake_fd < 0)
		return -errno;
	r = sd_event_add_io(event, &j->wake, j->wake_fd, EPOLLIN, on_wake, j);
	if (r >= 0)
		r = sd_event_add_defer(event, &j->kick, on_kick, j);
	if (r >= 0)
		r = sd_event_source_set_enabled(j->kick, SD_EVENT_OFF);
	if (r < 0)
		return r;
	*ret_jobs = TAKE(j);
	return 0;
}

struct jobs *jobs_free(struct jobs *jobs)
{
	struct job *job;

	if (!jobs)
		return NULL;

	if (jobs->running) {
		job = first_pending(jobs);
		atomic_store(&job->cancel, true);
		answer_thread(jobs, -ECANCELED, true);
		(void)pthread_join(jobs->thread, NULL);
		jobs->running = false;
		finish_job(jobs, job);
	}
	while ((job = first_pending(jobs))) {
		job->error = -ECANCELED;
		(void)snprintf(job->message, sizeof(job->message), "ptd is stopping");
		finish_job(jobs, job);
	}
	vec_deinit_each(&jobs->list, left, free(*left));
	sd_event_source_disable_unref(jobs->kick);
	sd_event_source_disable_unref(jobs->wake);
	jobs->wake_fd = fd_close(jobs->wake_fd);
	free(jobs);
	return NULL;
}

int jobs_add(struct jobs *jobs, const char *id, const struct scope *scope,
	     const struct caller *caller)
{
	struct job *job;
	int r;

	/* One runs, or is to begin at once. */
	if (jobs_pending(jobs) > JOBS_WAITING_MAX)
		return -EBUSY;
	job = calloc(1, sizeof(*job));
	if (!job)
		return -ENOMEM;
	job->jobs = jobs;
	job->caller = *caller;
	if (scope)
		job->scope = *scope;
	(void)snprintf(job->id, sizeof(job->id), "%s", id);
	r = vec_reserve(&jobs->list, 1);
	if (r == 0)
		r = sd_event_source_set_enabled(jobs->kick, SD_EVENT_ONESHOT);
	if (r < 0) {
		free(job);
		return r;
	}
	jobs->list.items[jobs->list.n++] = job; /* there is room */
	return 0;
}

const struct job *jobs_find(const struct jobs *jobs, const char *id)
{
	for (size_t i = 0; i < jobs->list.n; i++)
		if (strcmp(jobs->list.items[i]->id, id) == 0)
			return jobs->list.items[i];
	return NULL;
}
