/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Threads
 *
 * Who may call what: a decoder, its sinks and all that hangs on them belong to the thread that made
 * them, the owner; its tasks run in other threads, and touch nothing but what the task holds. What
 * is shared beyond that says so in its header ("Several threads may call this at once"). In the
 * daemon, everything belongs to the event loop's thread but the snapshot's writer and the copier,
 * whose headers say what they share.
 *
 * A fixed number of threads that run tasks, about in the order in which these are added. The thread
 * that adds the tasks, the owner, is one of the threads, number 0: it runs tasks while it waits for
 * one. A task must not add or wait for tasks.
 *
 * What a task reads was written before threads_add(); what it wrote may be read once
 * threads_is_done() is true or threads_wait() has returned.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/base.h"
#include "ptd/decode.h"

#define THREADS_MAX PTD_THREADS_MAX

struct task {
	/* @thread is the number of the thread that runs the task. */
	void (*run)(struct task *task, size_t thread);
	/* 1 + the number of the thread that had best run it, because what the task reads may be in
	 * the cache of its CPU; 0: any. Another one runs it only if it has nothing else to do; the
	 * owner also before tasks that are near none, so such a task should be short. */
	size_t near;
	struct task *next; /* in the queue */
	bool is_done;
};

/* Return: how many threads there are, with the owner; 1 if @threads is NULL. */
size_t threads_n(const struct ptd_threads *threads);

/* Add a task, which stays where it is until it is done. */
void threads_add(struct ptd_threads *threads, struct task *task);

/* Return: whether the task, which was added, has been run. */
bool threads_is_done(struct ptd_threads *threads, const struct task *task);

/* Run tasks until @task, which was added, has been run by this or another thread. */
void threads_wait(struct ptd_threads *threads, const struct task *task);

/* Return: how many CPUs this process may use; at least 1, at most THREADS_MAX. */
size_t threads_n_cpus(void);

/*
 * Start @n_max - 1 threads, or fewer, but not below @n_min - 1, if no more can be started: limits
 * of memory or of processes may be low. @n_min is at least 1.
 *
 * Return: 0; -EINVAL if @n_max is more than THREADS_MAX; or negative errno.
 */
_must_check_ int threads_start(size_t n_min, size_t n_max, struct ptd_threads **ret_threads);
