/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "daemon/plugin/fdholder.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/syscall.h>

#include "util/quietthread.h"

#define STACK_SIZE ((size_t)(PTHREAD_STACK_MIN + 65536))

struct start {
	int fd;
	pid_t tid; /* or negative errno */
	sem_t done;
};

/* Make a descriptor table with @fd only. */
static int unshare_table(int fd)
{
	if (syscall(SYS_close_range, (unsigned)fd + 1, ~0u, CLOSE_RANGE_UNSHARE) < 0)
		return -errno;
	if (fd > 0 && syscall(SYS_close_range, 0u, (unsigned)fd - 1, 0u) < 0)
		return -errno;
	return (int)syscall(SYS_gettid);
}

static void *hold_fd(void *userdata)
{
	struct start *start = userdata;
	const int r = unshare_table(start->fd);

	start->tid = r;
	/* From here on @start belongs to the other thread. */
	(void)sem_post(&start->done);
	while (r > 0)
		(void)pause();
	return NULL;
}

int fdholder_start(struct fdholder *fdholder, int fd)
{
	struct start start = { .fd = fd };
	pthread_attr_t attr;
	pthread_t thread;
	int r;

	r = pthread_attr_init(&attr);
	if (r != 0)
		return -r;
	(void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	(void)pthread_attr_setstacksize(&attr, STACK_SIZE);
	(void)sem_init(&start.done, 0, 0);

	/* The program's signals are not for a thread that QEMU does not know. */
	r = quietthread_start(&thread, &attr, hold_fd, &start);
	(void)pthread_attr_destroy(&attr);
	if (r < 0)
		return r;

	while (sem_wait(&start.done) < 0)
		;
	if (start.tid < 0)
		return start.tid;
	*fdholder = (struct fdholder){ .tid = start.tid, .fd = fd };
	return 0;
}

int fdholder_borrow(const struct fdholder *fdholder)
{
	char path[64];
	int fd;

	if (fdholder->tid == 0)
		return -EBADF;
	(void)snprintf(path, sizeof(path), "/proc/self/task/%d/fd/%d", (int)fdholder->tid,
		       fdholder->fd);
	fd = open(path, O_RDWR | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}
