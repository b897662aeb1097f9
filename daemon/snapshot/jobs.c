/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/snapshot/jobs.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <systemd/sd-event.h>

#include "base/clock.h"
#include "daemon/share/share.h"
#include "util/quietthread.h"
#include "util/vec.h"

/* Of the thread, for gather(). */
enum asking {
	ASKING_NOTHING,
	ASKING,
	ASKING_LATER, /* gather() has begun, and jobs_answer() is to come */
	ASKING_ANSWERED,
	ASKING_IN_VAIN, /* the event loop is waiting for the thread to end */
};

/* So many users' last own snapshots are remembered: more of them hardly begin within a pause. */
#define PAUSES_MAX 32u

#define REST_US UINT64_C(10000) /* by which a pause may be longer */

/* A user's last own snapshot. */
struct pause {
	uid_t uid;
	uint64_t until; /* CLOCK_MONOTONIC, in us: he has no other before; 0: there was none */
};

struct jobs {
	const struct jobs_ops *ops;
	void *userdata;        /* borrowed */
	sd_event_source *kick; /* starts what waits */
	sd_event_source *rest; /* does that when a pause is over */
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
	list;              /* finished ones first, then the running one, then in the order they
				 * came */
	uid_t turn;        /* whose job was begun last */
	uint64_t pause_us; /* between a user's own ones */
	struct pause pauses[PAUSES_MAX];
	struct share share; /* of places to wait; up to date when what is taken was counted */
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
	for (size_t i = 0; i < jobs->list.n; i++)
		if (!jobs->list.items[i]->done && !jobs->list.items[i]->scope.is_own)
			return false;
	return !jobs->running;
}

static void forget_job(struct jobs *j, const struct job *job)
{
	size_t i = 0;

	while (j->list.items[i] != job)
		i++;
	free(j->list.items[i]);
	j->list.n--;
	memmove(j->list.items + i, j->list.items + i + 1, (j->list.n - i) * sizeof(struct job *));
}

static void finish_job(struct jobs *j, struct job *job)
{
	job->done = true;
	j->ops->finish(job, j->userdata);

	/* Forget the oldest result when there are too many. */
	if (job->scope.is_own)
		forget_job(j, job);
	else if (j->list.n - jobs_pending(j) > JOBS_FINISHED_MAX)
		forget_job(j, j->list.items[0]);
}

/* --- turns ------------------------------------------------------------------------------------ */

static uint64_t now_us(void)
{
	return clock_ns(CLOCK_MONOTONIC) / 1000;
}

/* Return: when the pause of the user is over; 0: he has none. */
static uint64_t pause_of(const struct jobs *j, uid_t uid)
{
	for (size_t i = 0; i < PAUSES_MAX; i++)
		if (j->pauses[i].until > 0 && j->pauses[i].uid == uid)
			return j->pauses[i].until;
	return 0;
}

/* If there are too many, the one is forgotten that is over first. */
static void begin_pause(struct jobs *j, uid_t uid)
{
	struct pause *pause = &j->pauses[0];

	for (size_t i = 0; i < PAUSES_MAX; i++) {
		if (j->pauses[i].until > 0 && j->pauses[i].uid == uid) {
			pause = &j->pauses[i];
			break;
		}
		if (j->pauses[i].until < pause->until)
			pause = &j->pauses[i];
	}
	*pause = (struct pause){ uid, now_us() + j->pause_us };
}

/* The user's last one did not come to its end. */
static void end_pause(struct jobs *j, uid_t uid)
{
	for (size_t i = 0; i < PAUSES_MAX; i++)
		if (j->pauses[i].uid == uid)
			j->pauses[i].until = 0;
}

/* Find the first job from @i on that is, or is not, a user's own, and that is another user's than
 * the last one. A user's own ones wait until his pause is over. Return: its index, or the number of
 * jobs. */
static size_t find_turn(const struct jobs *j, size_t i, bool is_own, bool of_another)
{
	struct job *const *items = j->list.items;
	const uint64_t now = is_own ? now_us() : 0;

	while (i < j->list.n && (items[i]->scope.is_own != is_own ||
				 (of_another && items[i]->caller.uid == j->turn) ||
				 (is_own && pause_of(j, items[i]->caller.uid) > now)))
		i++;
	return i;
}

/* Let the first job of another user than the last one be the next. Users' own ones come last.
 * Return: whether one may begin now. */
static bool take_turns(struct jobs *j)
{
	struct job **items = j->list.items, *next;
	size_t first = 0, i;

	while (first < j->list.n && items[first]->done)
		first++;
	i = find_turn(j, first, false, true);
	if (i == j->list.n)
		i = find_turn(j, first, false, false);
	if (i == j->list.n)
		i = find_turn(j, first, true, true);
	if (i == j->list.n)
		i = find_turn(j, first, true, false);
	if (i == j->list.n)
		return false;
	next = items[i];
	memmove(items + first + 1, items + first, (i - first) * sizeof(struct job *));
	items[first] = next;
	j->turn = next->caller.uid;
	if (next->scope.is_own && j->pause_us > 0)
		begin_pause(j, next->caller.uid);
	return true;
}

/* All that wait do so for the end of a pause. Return: 0, or negative errno. */
static int await_pause(struct jobs *j)
{
	uint64_t until = UINT64_MAX;
	int r;

	for (size_t i = 0; i < j->list.n; i++) {
		const struct job *job = j->list.items[i];

		if (!job->done && pause_of(j, job->caller.uid) < until)
			until = pause_of(j, job->caller.uid);
	}
	if (until == UINT64_MAX)
		return 0;
	r = sd_event_source_set_time(j->rest, until);
	return r < 0 ? r : sd_event_source_set_enabled(j->rest, SD_EVENT_ONESHOT);
}

/* --- the thread ------------------------------------------------------------------------------- */

struct start {
	struct jobs *jobs;
	struct job *job;
};

static void *run_job(void *userdata)
{
	struct start *start = userdata;
	struct jobs *j = start->jobs;

	start->job->error = j->ops->run(start->job);
	free(start);
	(void)pthread_mutex_lock(&j->lock);
	j->ended = true;
	(void)pthread_mutex_unlock(&j->lock);
	(void)eventfd_write(j->wake_fd, 1);
	return NULL;
}

static int start_thread(struct jobs *j, struct job *job)
{
	struct start *start = malloc(sizeof(*start));
	int r;

	if (!start)
		return -ENOMEM;
	*start = (struct start){ .jobs = j, .job = job };
	j->ended = false;
	r = quietthread_start(&j->thread, NULL, run_job, start);
	if (r < 0)
		free(start);
	else
		j->running = true;
	return r;
}

/* The job was cancelled, and waits again. */
static void put_back(struct jobs *j, struct job *job)
{
	j->ops->put_back(job, j->userdata);
	atomic_store(&job->cancel, false);
	job->error = 0;
	job->message[0] = '\0';
	end_pause(j, job->caller.uid);
}

/* Begin the next job, unless one runs. */
static int begin_next(struct jobs *j)
{
	struct job *job;
	int r;

	while (!j->running) {
		if (!take_turns(j))
			return await_pause(j);
		job = first_pending(j);
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
	(void)source;
	return begin_next(userdata);
}

static int on_rest(sd_event_source *source, uint64_t usec, void *userdata)
{
	(void)source;
	(void)usec;
	return begin_next(userdata);
}

int jobs_gather(struct job *job)
{
	struct jobs *j = job->jobs;
	int r = -ECANCELED;

	(void)pthread_mutex_lock(&j->lock);
	/* Whoever cancels it looks afterwards whether it asks. */
	if (j->asking == ASKING_NOTHING && !atomic_load(&job->cancel)) {
		j->asking = ASKING;
		(void)eventfd_write(j->wake_fd, 1);
		while (j->asking == ASKING || j->asking == ASKING_LATER)
			(void)pthread_cond_wait(&j->answered, &j->lock);
	}
	if (j->asking == ASKING_ANSWERED) {
		j->asking = ASKING_NOTHING;
		r = j->answer;
	}
	(void)pthread_mutex_unlock(&j->lock);
	return r;
}

/* Let the thread go on if it waits, with that answer. @in_vain: and never again */
static void answer_thread(struct jobs *j, int error, bool in_vain)
{
	(void)pthread_mutex_lock(&j->lock);
	if (in_vain)
		j->asking = ASKING_IN_VAIN;
	else if (j->asking == ASKING || j->asking == ASKING_LATER)
		j->asking = ASKING_ANSWERED;
	j->answer = error;
	(void)pthread_cond_signal(&j->answered);
	(void)pthread_mutex_unlock(&j->lock);
}

void jobs_answer(struct jobs *jobs, int error)
{
	if (jobs->running)
		answer_thread(jobs, error, false);
}

/* Return: whether the thread asks for something that has not begun; if so, it has now. */
static bool begin_answer(struct jobs *j, bool *ret_ended)
{
	bool asking;

	(void)pthread_mutex_lock(&j->lock);
	asking = j->asking == ASKING;
	if (asking)
		j->asking = ASKING_LATER;
	*ret_ended = j->ended;
	(void)pthread_mutex_unlock(&j->lock);
	return asking;
}

static int on_wake(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct jobs *j = userdata;
	struct job *job;
	bool ended;
	eventfd_t n;
	int r;

	(void)source;
	(void)revents;
	(void)eventfd_read(fd, &n);
	if (begin_answer(j, &ended)) {
		r = j->ops->gather(first_pending(j), j->userdata);
		if (r != JOBS_LATER)
			answer_thread(j, r, false);
		return 0;
	}
	if (!j->running || !ended)
		return 0;
	(void)pthread_join(j->thread, NULL);
	j->running = false;
	job = first_pending(j);
	if (job->scope.is_own && job->error == -ECANCELED)
		put_back(j, job);
	else
		finish_job(j, job);
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
	if (r >= 0)
		r = sd_event_add_time(event, &j->rest, CLOCK_MONOTONIC, 0, REST_US, on_rest, j);
	if (r >= 0)
		r = sd_event_source_set_enabled(j->rest, SD_EVENT_OFF);
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
	for (size_t i = 0; i < jobs->list.n; i++)
		free(jobs->list.items[i]);
	vec_deinit(&jobs->list);
	sd_event_source_disable_unref(jobs->kick);
	sd_event_source_disable_unref(jobs->rest);
	sd_event_source_disable_unref(jobs->wake);
	jobs->wake_fd = fd_close(jobs->wake_fd);
	free(jobs);
	return NULL;
}

/* All wait but the one that runs, or is to begin at once. */
static void count_waiting(struct jobs *j)
{
	bool has_one = j->running && first_pending(j)->scope.is_own;

	share_restart(&j->share);
	for (size_t i = 0; i < j->list.n; i++) {
		const struct job *job = j->list.items[i];

		if (job->done || job->scope.is_own)
			continue;
		if (has_one)
			share_take(&j->share, job->caller.uid, 1);
		has_one = true;
	}
}

/* Have the newest job of the user fail that waits. */
static void push_out(struct jobs *j, uid_t uid)
{
	size_t i = j->list.n;
	struct job *job;

	do
		i--;
	while (j->list.items[i]->caller.uid != uid || j->list.items[i]->scope.is_own);
	job = j->list.items[i];
	/* Finished jobs come first. */
	for (; i > 0 && !j->list.items[i - 1]->done; i--)
		j->list.items[i] = j->list.items[i - 1];
	j->list.items[i] = job;
	share_count_taken_back(&j->share, uid);
	job->error = -EBUSY;
	(void)snprintf(job->message, sizeof(job->message),
		       "snapshot %s was not begun: user %u has more requests than his share, and "
		       "others need the places",
		       job->id, (unsigned)uid);
	finish_job(j, job);
}

/* Return: whether there is a place for a job of the user. */
static bool make_place(struct jobs *j, uid_t uid)
{
	uid_t giver;

	count_waiting(j);
	if (share_allows(&j->share, JOBS_WAITING_MAX, uid, 1))
		return true;
	share_refuse(&j->share, JOBS_WAITING_MAX, uid, 1);
	if (!share_is_in_part(&j->share, JOBS_WAITING_MAX, uid, 1) ||
	    !share_giver(&j->share, JOBS_WAITING_MAX, &giver))
		return false;
	push_out(j, giver);
	return true;
}

void jobs_get_share(const struct jobs *jobs, struct share *ret_share)
{
	*ret_share = jobs->share;
}

/* The rings go on being overwritten: what is asked for them as a whole does not wait. */
static void cancel_own(struct jobs *j)
{
	struct job *job = j->running ? first_pending(j) : NULL;

	if (!job || !job->scope.is_own)
		return;
	atomic_store(&job->cancel, true);
	answer_thread(j, -ECANCELED, false);
}

void jobs_set_own_pause(struct jobs *jobs, uint64_t us)
{
	jobs->pause_us = us;
}

int jobs_add(struct jobs *jobs, const char *id, const struct scope *scope,
	     const struct caller *caller)
{
	const bool is_own = scope && scope->is_own;
	struct job *job;
	int r;

	if (!is_own && !make_place(jobs, caller->uid))
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
	if (!is_own)
		cancel_own(jobs);
	return 0;
}

const struct job *jobs_find(const struct jobs *jobs, const char *id)
{
	for (size_t i = 0; i < jobs->list.n; i++)
		if (strcmp(jobs->list.items[i]->id, id) == 0)
			return jobs->list.items[i];
	return NULL;
}
