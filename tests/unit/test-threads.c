/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Threads: each task is run once, by a thread whose number nobody else has meanwhile. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>

#include "decoder/util/threads.h"
#include "tests/lib/failing.h"

#define N_TASKS 2000

struct job {
	struct task task;
	int *busy; /* by the number of the thread */
	size_t n_threads;
	int n_runs;
	int n_wrong;
};

static void run(struct task *task, size_t thread)
{
	struct job *job = (struct job *)task;

	if (thread >= job->n_threads ||
	    __atomic_exchange_n(&job->busy[thread], 1, __ATOMIC_SEQ_CST))
		job->n_wrong++;
	job->n_runs++;
	(void)sched_yield();
	__atomic_store_n(&job->busy[thread], 0, __ATOMIC_SEQ_CST);
}

static void each_once(void **state)
{
	static const size_t counts[] = { 1, 2, 3, 8 };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
		struct job *jobs = calloc(N_TASKS, sizeof(*jobs));
		int busy[8] = {};
		struct ptd_threads *threads;

		assert_non_null(jobs);
		assert_int_equal(ptd_threads_new(counts[i], &threads), 0);
		assert_int_equal(threads_n(threads), counts[i]);
		for (size_t k = 0; k < N_TASKS; k++) {
			jobs[k] = (struct job){ .task = { .run = run, .near = k % 4 },
						.busy = busy,
						.n_threads = counts[i] };
			threads_add(threads, &jobs[k].task);
		}
		/* Whichever is waited for first. */
		for (size_t k = N_TASKS; k-- > 0;) {
			threads_wait(threads, &jobs[k].task);
			assert_true(threads_is_done(threads, &jobs[k].task));
			assert_int_equal(jobs[k].n_runs, 1);
			assert_int_equal(jobs[k].n_wrong, 0);
		}
		assert_null(ptd_threads_free(threads));
		free(jobs);
	}
}

static void note_order(struct task *task, size_t thread)
{
	struct job *job = (struct job *)task;

	(void)thread;
	job->n_runs = ++*job->busy;
}

/* With one thread, nothing is run before the owner waits; then in the order of adding. */
static void in_order(void **state)
{
	struct job jobs[3];
	struct ptd_threads *threads;
	int n = 0;

	(void)state;
	assert_int_equal(ptd_threads_new(1, &threads), 0);
	for (size_t i = 0; i < 3; i++) {
		jobs[i] = (struct job){ .task.run = note_order, .busy = &n };
		threads_add(threads, &jobs[i].task);
	}
	assert_false(threads_is_done(threads, &jobs[0].task));
	threads_wait(threads, &jobs[1].task);
	assert_int_equal(jobs[0].n_runs, 1);
	assert_int_equal(jobs[1].n_runs, 2);
	assert_false(threads_is_done(threads, &jobs[2].task));
	threads_wait(threads, &jobs[2].task);
	assert_null(ptd_threads_free(threads));
}

/* The owner, number 0, first runs what is near it, then what is near others, then the rest. */
static void the_nearest_first(void **state)
{
	static const size_t near[] = { 2, 0, 1, 0, 2, 1 };
	static const int order[] = { 3, 5, 1, 6, 4, 2 };
	struct job jobs[ARRAY_LEN(near)];
	struct ptd_threads *threads;
	int n = 0;

	(void)state;
	assert_int_equal(ptd_threads_new(1, &threads), 0);
	for (size_t i = 0; i < ARRAY_LEN(near); i++) {
		jobs[i] =
		    (struct job){ .task = { .run = note_order, .near = near[i] }, .busy = &n };
		threads_add(threads, &jobs[i].task);
	}
	for (size_t i = 0; i < ARRAY_LEN(near); i++)
		threads_wait(threads, &jobs[i].task);
	for (size_t i = 0; i < ARRAY_LEN(near); i++)
		assert_int_equal(jobs[i].n_runs, order[i]);
	/* The queue is whole: what is added comes last. */
	for (size_t i = 0; i < ARRAY_LEN(near); i++)
		threads_add(threads, &jobs[i].task);
	for (size_t i = ARRAY_LEN(near); i-- > 0;)
		threads_wait(threads, &jobs[i].task);
	assert_int_equal(n, 2 * ARRAY_LEN(near));
	assert_null(ptd_threads_free(threads));
}

static void how_many(void **state)
{
	struct ptd_threads *threads = (struct ptd_threads *)0x1;
	cpu_set_t all, one;

	(void)state;
	assert_int_equal(threads_n(NULL), 1);
	assert_null(ptd_threads_free(NULL));
	assert_int_equal(ptd_threads_new(THREADS_MAX + 1, &threads), -EINVAL);
	assert_ptr_equal(threads, (struct ptd_threads *)0x1);

	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	assert_int_equal(threads_n_cpus(), CPU_COUNT(&all));
	CPU_ZERO(&one);
	for (int cpu = 0; CPU_COUNT(&one) == 0; cpu++)
		if (CPU_ISSET(cpu, &all))
			CPU_SET(cpu, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	assert_int_equal(threads_n_cpus(), 1);
	assert_int_equal(ptd_threads_new(0, &threads), 0);
	assert_int_equal(threads_n(threads), 1);
	assert_null(ptd_threads_free(threads));
	assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
}

static int start_four(void *userdata)
{
	return ptd_threads_new(4, userdata);
}

static void end_them(void *userdata)
{
	struct ptd_threads **threads = userdata;

	assert_int_equal(threads_n(*threads), 4);
	*threads = ptd_threads_free(*threads);
}

/* If one of the threads cannot be started, those that were are ended. */
static void not_started(void **state)
{
	struct ptd_threads *threads = NULL;

	(void)state;
	failing_each(start_four, end_them, &threads);
}

static int start_up_to_four(void *userdata)
{
	return threads_start(1, 4, userdata);
}

static void end_some(void *userdata)
{
	struct ptd_threads **threads = userdata;
	const bool all = !failing_name();

	assert_true(all ? threads_n(*threads) == 4 : threads_n(*threads) < 4);
	*threads = ptd_threads_free(*threads);
}

/* Where so many are not needed, those that could be started are enough. */
static void fewer(void **state)
{
	struct ptd_threads *threads = NULL;

	(void)state;
	failing_each(start_up_to_four, end_some, &threads);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_once),         cmocka_unit_test(in_order),
		cmocka_unit_test(the_nearest_first), cmocka_unit_test(how_many),
		cmocka_unit_test(not_started),       cmocka_unit_test(fewer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
