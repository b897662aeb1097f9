/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/source/ptclock.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <x86intrin.h>

#include "base/clock.h"
#include "util/mutex.h"

#define TRIES       4u
#define SAMPLES_MAX 2048u

struct samples {
	_Atomic uint64_t n;
	struct ptclock_sample samples[SAMPLES_MAX];
};

/* The file. To the half that holds, samples are only appended; any other change is written to the
 * other half, which holds from then on. So there is a half that is whole, even if ptd is killed. */
struct halves {
	_Atomic uint32_t holds; /* 0 or 1 */
	struct samples halves[2];
};

struct ptclock_log {
	pthread_mutex_t lock;
	int fd;
	struct halves *file;
};

int ptclock_read(const struct perf_event_mmap_page *page, struct tsc_conv *ret_conv)
{
	struct tsc_conv c;
	uint32_t sequence;
	bool has;

	/* The kernel changes it under a sequence lock. */
	do {
		sequence = __atomic_load_n(&page->lock, __ATOMIC_ACQUIRE);
		has = page->cap_user_time_zero;
		c = (struct tsc_conv){ .valid = true,
				       .shift = page->time_shift,
				       .mult = page->time_mult,
				       .zero = page->time_zero };
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
	} while (sequence & 1 || __atomic_load_n(&page->lock, __ATOMIC_RELAXED) != sequence);
	if (!has || c.mult == 0 || c.shift > TSC_SHIFT_MAX)
		return -EOPNOTSUPP;
	*ret_conv = c;
	return 0;
}

struct ptclock_sample ptclock_sample(void)
{
	uint64_t shortest = UINT64_MAX;
	struct ptclock_sample best = {};

	/* We may be interrupted in between: the quickest is the best. */
	for (unsigned i = 0; i < TRIES; i++) {
		const uint64_t before = __rdtsc();
		const uint64_t monotonic = clock_ns(CLOCK_MONOTONIC);
		const uint64_t realtime = clock_ns(CLOCK_REALTIME);
		const uint64_t took = __rdtsc() - before;

		if (took >= shortest)
			continue;
		shortest = took;
		best = (struct ptclock_sample){ .tsc = before + took / 2,
						.monotonic_ns = monotonic,
						.realtime_ns = realtime };
	}
	return best;
}

static struct samples *in_use(const struct ptclock_log *log)
{
	return &log->file->halves[atomic_load(&log->file->holds) % 2];
}

static struct samples *other(const struct ptclock_log *log)
{
	return &log->file->halves[(atomic_load(&log->file->holds) + 1) % 2];
}

static void swap_halves(const struct ptclock_log *log)
{
	atomic_store(&log->file->holds, (atomic_load(&log->file->holds) + 1) % 2);
}

static int log_make(int fd, struct ptclock_log **ret_log)
{
	struct ptclock_log *log = malloc(sizeof(*log));
	void *file;

	if (!log)
		return -ENOMEM;
	file = mmap(NULL, sizeof(*log->file), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (file == MAP_FAILED) {
		free(log);
		return -ENOMEM;
	}
	*log = (struct ptclock_log){ .fd = fd, .file = file };
	(void)pthread_mutex_init(&log->lock, NULL);
	*ret_log = log;
	return 0;
}

int ptclock_log_new(struct ptclock_log **ret_log)
{
	_cleanup_(fd_closep) int fd = memfd_create("ptd-clock", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int r;

	if (fd < 0 || ftruncate(fd, sizeof(struct halves)) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) < 0)
		return -errno;
	r = log_make(fd, ret_log);
	if (r == 0)
		fd = -1;
	return r;
}

int ptclock_log_resume(int fd, struct ptclock_log **ret_log)
{
	struct ptclock_log *log;
	struct stat st;
	int r;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size != sizeof(struct halves) ||
	    !((unsigned)fcntl(fd, F_GET_SEALS) & F_SEAL_SHRINK))
		return -EBADMSG;
	r = log_make(fd, &log);
	if (r < 0)
		return r;
	if (in_use(log)->n > SAMPLES_MAX) {
		log->fd = -1;
		(void)ptclock_log_free(log);
		return -EBADMSG;
	}
	*ret_log = log;
	return 0;
}

struct ptclock_log *ptclock_log_free(struct ptclock_log *log)
{
	if (!log)
		return NULL;
	(void)munmap(log->file, sizeof(*log->file));
	(void)fd_close(log->fd);
	(void)pthread_mutex_destroy(&log->lock);
	free(log);
	return NULL;
}

int ptclock_log_fd(const struct ptclock_log *log)
{
	return log->fd;
}

int ptclock_log_copy(struct ptclock_log *log, struct ptclock_log **ret_copy)
{
	struct ptclock_log *copy;
	int r;

	r = ptclock_log_new(&copy);
	if (r < 0)
		return r;
	HOLD(&log->lock);
	*in_use(copy) = *in_use(log);
	*ret_copy = copy;
	return 0;
}

/* Drop every other one of the older half. */
static void thin(const struct ptclock_log *log)
{
	const struct samples *all = in_use(log);
	struct samples *some = other(log);
	size_t n = 0;

	for (size_t i = 0; i < all->n; i++)
		if (i >= SAMPLES_MAX / 2 || i % 2 == 0)
			some->samples[n++] = all->samples[i];
	some->n = n;
	swap_halves(log);
}

void ptclock_log_add(struct ptclock_log *log, const struct ptclock_sample *sample)
{
	struct samples *s;

	HOLD(&log->lock);
	if (in_use(log)->n == SAMPLES_MAX)
		thin(log);
	s = in_use(log);
	s->samples[s->n] = *sample;
	s->n++;
}

void ptclock_log_clear(struct ptclock_log *log)
{
	HOLD(&log->lock);
	in_use(log)->n = 0;
}

void ptclock_log_write(struct ptclock_log *log, uint64_t since, FILE *f)
{
	const struct samples *s;
	size_t first;

	HOLD(&log->lock);
	s = in_use(log);
	for (first = s->n; first > 1 && s->samples[first - 1].tsc > since;)
		first--;
	for (size_t i = first > 0 ? first - 1 : 0; i < s->n; i++)
		fprintf(f, "%" PRIu64 " %" PRIu64 " %" PRIu64 "\n", s->samples[i].tsc,
			s->samples[i].monotonic_ns, s->samples[i].realtime_ns);
}
