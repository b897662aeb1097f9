/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/source/ptclock.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <x86intrin.h>

#include "base/clock.h"

#define TRIES       4u
#define SAMPLES_MAX 2048u

struct ptclock_log {
	pthread_mutex_t lock;
	struct ptclock_sample samples[SAMPLES_MAX];
	size_t n;
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

int ptclock_log_new(struct ptclock_log **ret_log)
{
	struct ptclock_log *log = calloc(1, sizeof(*log));

	if (!log)
		return -ENOMEM;
	(void)pthread_mutex_init(&log->lock, NULL);
	*ret_log = log;
	return 0;
}

struct ptclock_log *ptclock_log_free(struct ptclock_log *log)
{
	if (!log)
		return NULL;
	(void)pthread_mutex_destroy(&log->lock);
	free(log);
	return NULL;
}

int ptclock_log_copy(struct ptclock_log *log, struct ptclock_log **ret_copy)
{
	struct ptclock_log *copy;
	int r;

	r = ptclock_log_new(&copy);
	if (r < 0)
		return r;
	(void)pthread_mutex_lock(&log->lock);
	memcpy(copy->samples, log->samples, log->n * sizeof(*log->samples));
	copy->n = log->n;
	(void)pthread_mutex_unlock(&log->lock);
	*ret_copy = copy;
	return 0;
}

/* Drop every other one of the older half. */
static void thin(struct ptclock_log *log)
{
	size_t n = 0;

	for (size_t i = 0; i < log->n; i++)
		if (i >= SAMPLES_MAX / 2 || i % 2 == 0)
			log->samples[n++] = log->samples[i];
	log->n = n;
}

void ptclock_log_add(struct ptclock_log *log, const struct ptclock_sample *sample)
{
	(void)pthread_mutex_lock(&log->lock);
	if (log->n == SAMPLES_MAX)
		thin(log);
	log->samples[log->n++] = *sample;
	(void)pthread_mutex_unlock(&log->lock);
}

void ptclock_log_clear(struct ptclock_log *log)
{
	(void)pthread_mutex_lock(&log->lock);
	log->n = 0;
	(void)pthread_mutex_unlock(&log->lock);
}

void ptclock_log_write(struct ptclock_log *log, uint64_t since, FILE *f)
{
	size_t first;

	(void)pthread_mutex_lock(&log->lock);
	for (first = log->n; first > 1 && log->samples[first - 1].tsc > since;)
		first--;
	for (size_t i = first > 0 ? first - 1 : 0; i < log->n; i++)
		fprintf(f, "%" PRIu64 " %" PRIu64 " %" PRIu64 "\n", log->samples[i].tsc,
			log->samples[i].monotonic_ns, log->samples[i].realtime_ns);
	(void)pthread_mutex_unlock(&log->lock);
}
