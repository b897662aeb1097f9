/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/util/threads.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "util/quietthread.h"

/*
 * How often a thread that has nothing to do looks for it again before it sleeps: for some ten
 * microseconds, which is about what it costs to be woken. Tasks take hardly longer.
 */
#define N_LOOKS 500

/* How many tasks of the queue a thread looks at. */
#define N_TASKS_SEEN 64

/* Of each thread's stack, in bytes. Nothing here recurses by what foreign bytes say. */
#define STACK_SIZE ((size_t)1 << 20)

struct ptd_threads {
	pthread_mutex_t mutex;
	pthread_cond_t added; /* a task, or @ends was set */
	pthread_cond_t done;  /* what the owner waits for: */
	const struct task *awaited;

	/* The queue of tasks that no thread has begun. */
	struct task *first, **last;
	size_t n_asleep; /* threads that wait for one */
	bool ends;

	size_t n; /* threads that run, with the owner */
	size_t n_numbered;
	pthread_t ids[THREADS_MAX - 1];
};

DEFINE_CLEANUP(struct ptd_threads *, ptd_threads_free);

static bool has_task(const struct ptd_threads *threads)
{
	return __atomic_load_n(&threads->first, __ATOMIC_RELAXED);
}

static bool is_done(const struct task *task)
{
	return __atomic_load_n(&task->is_done, __ATOMIC_ACQUIRE);
}

/* Leave the core to its other thread for a moment. */
static void pause_cpu(void)
{
#if defined(__i386__) || defined(__x86_64__)
	__builtin_ia32_pause();
#endif
}

/*
 * Return: the link to the first task of the queue that is near thread @number; or else to the first
 * that is near none; or else to the first. The owner prefers tasks that are near other threads to
 * tasks that are near none: these are short, and only the owner can add more work.
 */
static struct task **choose_task(struct ptd_threads *threads, size_t number)
{
	struct task **link = &threads->first, **chosen = NULL;

	for (size_t i = 0; i < N_TASKS_SEEN && *link; i++, link = &(*link)->next) {
		if ((*link)->near == number + 1)
			return link;
		if (((*link)->near == 0) == (number > 0) && !chosen)
			chosen = link;
	}
	return chosen ?: &threads->first;
}

/* Run a task of the queue. The mutex is locked before and after that. */
static void run_one(struct ptd_threads *threads, size_t number)
{
	struct task **link = choose_task(threads, number), *task = *link;

	__atomic_store_n(link, task->next, __ATOMIC_RELAXED);
	if (!task->next)
		threads->last = link;
	(void)pthread_mutex_unlock(&threads->mutex);
	task->run(task, number);
	(void)pthread_mutex_lock(&threads->mutex);
	if (task == threads->awaited)
		(void)pthread_cond_signal(&threads->done);
	/* From here on it may not exist any more. */
	__atomic_store_n(&task->is_done, true, __ATOMIC_RELEASE);
}

/* Wait for a task to be added. The mutex is locked before and after that. */
static void wait_for_tasks(struct ptd_threads *threads)
{
	(void)pthread_mutex_unlock(&threads->mutex);
	for (size_t i = 0; i < N_LOOKS && !has_task(threads); i++)
		pause_cpu();
	(void)pthread_mutex_lock(&threads->mutex);
	if (threads->first || threads->ends)
		return;
	threads->n_asleep++;
	(void)pthread_cond_wait(&threads->added, &threads->mutex);
	threads->n_asleep--;
}

static void *work(void *userdata)
{
	struct ptd_threads *threads = userdata;
	size_t number;

	(void)pthread_mutex_lock(&threads->mutex);
	number = ++threads->n_numbered;
	for (;;) {
		if (threads->first)
			run_one(threads, number);
		else if (threads->ends)
			break;
		else
			wait_for_tasks(threads);
	}
	(void)pthread_mutex_unlock(&threads->mutex);
	return NULL;
}

static int start_thread(struct ptd_threads *threads)
{
	pthread_attr_t attr;
	int r;

	r = pthread_attr_init(&attr);
	if (r != 0)
		return -r;
	(void)pthread_attr_setstacksize(&attr, STACK_SIZE);
	r = quietthread_start(&threads->ids[threads->n - 1], &attr, work, threads);
	(void)pthread_attr_destroy(&attr);
	if (r == 0)
		threads->n++;
	return r;
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
	bool is_needed;

	task->next = NULL;
	task->is_done = false;
	(void)pthread_mutex_lock(&threads->mutex);
	__atomic_store_n(threads->last, task, __ATOMIC_RELAXED);
	threads->last = &task->next;
	is_needed = threads->n_asleep > 0;
	(void)pthread_mutex_unlock(&threads->mutex);
	if (is_needed)
		(void)pthread_cond_signal(&threads->added);
}

bool threads_is_done(struct ptd_threads *threads, const struct task *task)
{
	return is_done(task);
}

/* Wait until another thread has run @task. The mutex is locked before and after that. */
static void wait_for(struct ptd_threads *threads, const struct task *task)
{
	(void)pthread_mutex_unlock(&threads->mutex);
	for (size_t i = 0; i < N_LOOKS && !is_done(task); i++)
		pause_cpu();
	(void)pthread_mutex_lock(&threads->mutex);
	threads->awaited = task;
	while (!is_done(task))
		(void)pthread_cond_wait(&threads->done, &threads->mutex);
	threads->awaited = NULL;
}

void threads_wait(struct ptd_threads *threads, const struct task *task)
{
	if (is_done(task))
		return;
	(void)pthread_mutex_lock(&threads->mutex);
	while (!is_done(task)) {
		if (threads->first)
			run_one(threads, 0);
		else
			wait_for(threads, task);
	}
	(void)pthread_mutex_unlock(&threads->mutex);
}
