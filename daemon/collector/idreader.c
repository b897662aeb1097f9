/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/collector/idreader.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

#include "base/clock.h"
#include "util/buildid.h"
#include "util/quietthread.h"

/* Threads that there may be: those that wait for ever, too. */
#define THREADS_MAX 8u

static atomic_uint n_threads;

/* Shared with the thread, which frees it if it is the last that has it. */
struct idreader {
	pthread_mutex_t lock;
	pthread_cond_t change;
	bool left; /* the reader was freed: no more questions come */
	bool asked, answered;
	int fd; /* while it is asked: the thread's */
	int error;
	struct buildid id;
};

static void destroy_reader(struct idreader *reader)
{
	(void)fd_close(reader->fd);
	(void)pthread_cond_destroy(&reader->change);
	(void)pthread_mutex_destroy(&reader->lock);
	free(reader);
	(void)atomic_fetch_sub(&n_threads, 1);
}

static void *read_ids(void *userdata)
{
	struct idreader *reader = userdata;

	(void)pthread_mutex_lock(&reader->lock);
	for (;;) {
		struct buildid id = {};
		int error;

		while (!reader->left && (!reader->asked || reader->answered))
			(void)pthread_cond_wait(&reader->change, &reader->lock);
		if (reader->left)
			break;
		(void)pthread_mutex_unlock(&reader->lock);
		error = buildid_read(reader->fd, &id);
		(void)pthread_mutex_lock(&reader->lock);
		reader->fd = fd_close(reader->fd);
		reader->error = error;
		reader->id = id;
		reader->answered = true;
		(void)pthread_cond_broadcast(&reader->change);
	}
	(void)pthread_mutex_unlock(&reader->lock);
	destroy_reader(reader);
	return NULL;
}

static int start_thread(struct idreader *reader)
{
	pthread_attr_t attr;
	pthread_t thread;
	int r;

	r = pthread_attr_init(&attr);
	if (r)
		return -r;
	(void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	r = quietthread_start(&thread, &attr, read_ids, reader);
	(void)pthread_attr_destroy(&attr);
	return r;
}

int idreader_new(struct idreader **ret_reader)
{
	struct idreader *reader = malloc(sizeof(*reader));
	int r;

	if (!reader)
		return -ENOMEM;
	if (atomic_fetch_add(&n_threads, 1) >= THREADS_MAX) {
		(void)atomic_fetch_sub(&n_threads, 1);
		free(reader);
		return -EBUSY;
	}
	*reader = (struct idreader){
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.change = PTHREAD_COND_INITIALIZER,
		.fd = -1,
	};
	r = start_thread(reader);
	if (r < 0) {
		destroy_reader(reader);
		return r;
	}
	*ret_reader = reader;
	return 0;
}

struct idreader *idreader_free(struct idreader *reader)
{
	if (!reader)
		return NULL;
	(void)pthread_mutex_lock(&reader->lock);
	reader->left = true;
	(void)pthread_cond_broadcast(&reader->change);
	(void)pthread_mutex_unlock(&reader->lock);
	return NULL;
}

int idreader_read(struct idreader *reader, int fd, uint64_t timeout_ns, struct buildid *ret_id)
{
	const struct timespec until = clock_timespec(clock_ns(CLOCK_MONOTONIC) + timeout_ns);
	int r = 0;

	(void)pthread_mutex_lock(&reader->lock);
	if (reader->asked && !reader->answered) {
		(void)pthread_mutex_unlock(&reader->lock);
		(void)fd_close(fd);
		return -EBUSY;
	}
	reader->fd = fd;
	reader->asked = true;
	reader->answered = false;
	(void)pthread_cond_broadcast(&reader->change);
	while (!reader->answered && r == 0)
		r = pthread_cond_clockwait(&reader->change, &reader->lock, CLOCK_MONOTONIC, &until);
	if (reader->answered) {
		r = reader->error;
		reader->asked = false;
		if (r == 0)
			*ret_id = reader->id;
	} else {
		r = -r;
	}
	(void)pthread_mutex_unlock(&reader->lock);
	return r;
}
