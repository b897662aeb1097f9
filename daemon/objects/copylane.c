/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/objects/copylane.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "daemon/helper/collector/link.h"
#include "daemon/objects/asker.h"
#include "daemon/objects/object.h"
#include "daemon/spool/storedir.h"
#include "util/cancel.h"

/* Longest time for reading one original, while others wait: even a slow disk can read it. */
#define PATIENCE_MS        5000u
#define PATIENCE_MS_MIB    40u
#define PATIENCE_BYTES_MAX STOREDIR_FILE_MAX

/* Longest time to wait for a collector that is being started. If it does not come, the next object
 * does not wait for it. */
#define COLLECTOR_NS      UINT64_C(3000000000)
#define COLLECTOR_POLL_NS 50000000

int copylane_init(struct copylane *l, const atomic_bool *stop, const char *runtime_dir)
{
	*l = COPYLANE_NONE;
	l->stop = stop;
	l->hashed_fd = memfd_create("hashed", MFD_CLOEXEC);
	return l->hashed_fd < 0 ? -errno : collectorlink_new(runtime_dir, false, &l->link);
}

void copylane_deinit(struct copylane *l)
{
	(void)collectorlink_free(l->link);
	(void)fd_close(l->hashed_fd);
	(void)pthread_mutex_destroy(&l->lock);
}

void copylane_begin(struct copylane *l)
{
	const uint64_t nothing = 0;

	(void)pthread_mutex_lock(&l->lock);
	l->done = 0;
	l->done_at = clock_ns(CLOCK_MONOTONIC);
	(void)!pwrite(l->hashed_fd, &nothing, sizeof(nothing), 0);
	(void)pthread_mutex_unlock(&l->lock);
}

/* @waits: whether the lane waits for the collector, from now on */
static void set_waits(struct copylane *l, bool waits, int copy_fd)
{
	(void)pthread_mutex_lock(&l->lock);
	l->waits = waits;
	l->copy_fd = copy_fd;
	l->done_at = clock_ns(CLOCK_MONOTONIC);
	(void)pthread_mutex_unlock(&l->lock);
}

/* Return: whether to ask once more, until then, after the collector said @r: if there is none, one
 * may be starting. */
static bool ask_again(struct copylane *l, int r, uint64_t until)
{
	if (r != -ENOTCONN) {
		l->gave_up = false;
		return false;
	}
	l->gave_up = l->gave_up || clock_ns(CLOCK_MONOTONIC) >= until;
	if (l->gave_up || cancel_asked(l->stop))
		return false;
	/* No file is the cause. */
	set_waits(l, false, -1);
	(void)nanosleep(&(struct timespec){ .tv_nsec = COLLECTOR_POLL_NS }, NULL);
	return true;
}

static int ask_collector(struct copylane *l, struct collector_request *request, const int *fds,
			 struct collector_answer *ret_answer)
{
	const uint64_t until = clock_ns(CLOCK_MONOTONIC) + COLLECTOR_NS;
	int fd = -1, r;

	do {
		set_waits(l, true, request->verb == COLLECTOR_COPY ? fds[1] : -1);
		r = collectorlink_ask(l->link, request, fds, l->stop, ret_answer, &fd);
	} while (ask_again(l, r, until));
	set_waits(l, false, -1);
	/* None was asked for. */
	if (r == 0)
		(void)fd_close(fd);
	return r;
}

int copylane_find(struct copylane *l, const struct object *object, int *ret_fd)
{
	const uint64_t until = clock_ns(CLOCK_MONOTONIC) + COLLECTOR_NS;
	struct original original;
	int r;

	do {
		set_waits(l, true, -1);
		r = original_find(l->link, ORIGINAL_VERIFY, l->is_claimed, &object->mapped,
				  object->user, l->stop, ret_fd, &original);
	} while (ask_again(l, r, until));
	set_waits(l, false, -1);
	return r;
}

/* By what is known of the file before it is read. */
static uint32_t patience_ms(uint64_t size)
{
	const uint64_t most = size < PATIENCE_BYTES_MAX ? size : PATIENCE_BYTES_MAX;

	return PATIENCE_MS + (uint32_t)(most >> 20) * PATIENCE_MS_MIB;
}

int copylane_hash(struct copylane *l, const struct object *object, int fd,
		  struct collector_answer *ret_answer)
{
	const int fds[CHANNEL_FDS_MAX] = { fd, l->hashed_fd };
	struct collector_request request = {
		.verb = COLLECTOR_HASH,
		.timeout_ms = patience_ms(object->original.found ? object->original.size
								 : PATIENCE_BYTES_MAX),
		.pid = object->mapped.pid,
		.uid = object->user,
		.size_max = STOREDIR_FILE_MAX,
		.build_id = object->claimed,
	};

	return ask_collector(l, &request, fds, ret_answer);
}

int copylane_copy(struct copylane *l, const struct object *object, int fd, uint64_t size, int to)
{
	const int fds[CHANNEL_FDS_MAX] = { fd, to };
	struct collector_request request = {
		.verb = COLLECTOR_COPY,
		.timeout_ms = patience_ms(size),
		.pid = object->mapped.pid,
		.uid = object->user,
		.size_max = size,
	};
	struct collector_answer answer;

	return ask_collector(l, &request, fds, &answer);
}

/* Return: since when nothing of the lane's object has been read or copied. The lock is held. */
static uint64_t stands_since(struct copylane *l)
{
	uint64_t done = 0;
	struct stat st;

	if (pread(l->hashed_fd, &done, sizeof(done), 0) != (ssize_t)sizeof(done))
		done = 0;
	if (l->copy_fd >= 0 && fstat(l->copy_fd, &st) == 0)
		done += (uint64_t)st.st_size + (uint64_t)st.st_blocks;
	if (done != l->done) {
		l->done = done;
		l->done_at = clock_ns(CLOCK_MONOTONIC);
	}
	return l->done_at;
}

bool copylane_stands(struct copylane *l, uint64_t ns)
{
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);
	bool stands;

	(void)pthread_mutex_lock(&l->lock);
	stands = l->waits && now >= stands_since(l) + ns;
	(void)pthread_mutex_unlock(&l->lock);
	return stands;
}
