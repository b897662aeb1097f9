/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "util/threads.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>

/* Of each thread's stack, in bytes. Nothing here recurses by what foreign bytes say. */
#define STACK_SIZE ((size_t)1 << 20)

struct ptd_threads {
	pthread_mutex_t mutex;
	pthread_cond_t added; /* a task, or @ends was set */
	pthread_cond_t done;  /* a task is */

	/* The queue of tasks that no thread has begun. */
	struct task *first, **last;
	bool ends;

	size_t n; /* threads that run, with the owner */
	size_t n_numbered;
	pthread_t ids[THREADS_MAX - 1];
};

DEFINE_CLEANUP(struct ptd_threads *, ptd_threads_free);

/* Run the first task of the queue. The mutex is locked before and after that. */
static void run_first(struct ptd_threads *threads, size_t number)
{
	struct task *task = threads->first;

	threads->first = task->next;
	if (!threads->first)
		threads->last = &threads->first;
	(void)pthread_mutex_unlock(&threads->mutex);
	task->run(task, number);
	(void)pthread_mutex_lock(&threads->mutex);
	task->is_done = true;
	(void)pthread_cond_signal(&threads->done);
}

static void *work(void *userdata)
{
	struct ptd_threads *threads = userdata;
	size_t number;

	(void)pthread_mutex_lock(&threads->mutex);
	number = ++threads->n_numbered;
	for (;;) {
		if (threads->first)
			run_first(threads, number);
		else if (threads->ends)
			break;
		else
			(void)pthread_cond_wait(&threads->added, &threads->mutex);
	}
	(void)pthread_mutex_unlock(&threads->mutex);
	return NULL;
}

/* Start a thread with all signals blocked, so that they come to the program's threads. */
static int start_thread(struct ptd_threads *threads)
{
	pthread_attr_t attr;
	sigset_t all, before;
	int r;

	r = pthread_attr_init(&attr);
	if (r != 0)
		return -r;
	(void)pthread_attr_setstacksize(&attr, STACK_SIZE);
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&threads->ids[threads->n - 1], &attr, work, threads);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	(void)pthread_attr_destroy(&attr);
	if (r == 0)
		threads->n++;
	return -r;
}

size_t threads_n_cpus(void)
{
	cpu_set_t cpus;
	int n;

	/* A machine with more CPUs than fit into the set has enough. */
	if (sched_getaffinity(0, sizeof(cpus), &cpus) < 0)
		return errno == EINVAL ? THREADS_MAX : 1;
	n = CPU_COUNT(&cpus);
	return n < 1 ? 1 : n > THREADS_MAX ? THREADS_MAX : (size_t)n;
}

int threads_start(size_t n_min, size_t n_max, struct ptd_threads **ret_threads)
{
	_cleanup_(ptd_threads_freep) struct ptd_threads *threads = NULL;
	int r = 0;

	if (n_max > THREADS_MAX)
		return -EINVAL;
	threads = calloc(1, sizeof(*threads));
	if (!threads)
		return -ENOMEM;
	threads->last = &threads->first;
	threads->n = 1;
	(void)pthread_mutex_init(&threads->mutex, NULL);
	(void)pthread_cond_init(&threads->added, NULL);
	(void)pthread_cond_init(&threads->done, NULL);
	while (threads->n < n_max && r == 0)
		r = start_thread(threads);
	if (threads->n < n_min)
		return r;
	*ret_threads = TAKE(threads);
	return 0;
}

int ptd_threads_new(size_t n, struct ptd_threads **ret_threads)
{
	return n > 0 ? threads_start(n, n, ret_threads)
		     : threads_start(1, threads_n_cpus(), ret_threads);
}

struct ptd_threads *ptd_threads_free(struct ptd_threads *threads)
{
	if (!threads)
		return NULL;
	(void)pthread_mutex_lock(&threads->mutex);
	assert(!threads->first);
	threads->ends = true;
	(void)pthread_cond_broadcast(&threads->added);
	(void)pthread_mutex_unlock(&threads->mutex);
	for (size_t i = 0; i + 1 < threads->n; i++)
		(void)pthread_join(threads->ids[i], NULL);
	(void)pthread_cond_destroy(&threads->done);
	(void)pthread_cond_destroy(&threads->added);
	(void)pthread_mutex_destroy(&threads->mutex);
	free(threads);
	return NULL;
}

size_t threads_n(const struct ptd_threads *threads)
{
	return threads ? threads->n : 1;
}

void threads_add(struct ptd_threads *threads, struct task *task)
{
	task->next = NULL;
	task->is_done = false;
	(void)pthread_mutex_lock(&threads->mutex);
	*threads->last = task;
	threads->last = &task->next;
	(void)pthread_cond_signal(&threads->added);
	(void)pthread_mutex_unlock(&threads->mutex);
}

bool threads_is_done(struct ptd_threads *threads, const struct task *task)
{
	bool is_done;

	(void)pthread_mutex_lock(&threads->mutex);
	is_done = task->is_done;
	(void)pthread_mutex_unlock(&threads->mutex);
	return is_done;
}

void threads_wait(struct ptd_threads *threads, const struct task *task)
{
	(void)pthread_mutex_lock(&threads->mutex);
	while (!task->is_done) {
		if (threads->first)
			run_first(threads, 0);
		else
			(void)pthread_cond_wait(&threads->done, &threads->mutex);
	}
	(void)pthread_mutex_unlock(&threads->mutex);
}
