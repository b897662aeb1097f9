/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/snapshot/ringcopy.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <unistd.h>

#include "daemon/proc/meminfo.h"
#include "daemon/sideband/scope.h"
#include "daemon/snapshot/cpucopy.h"
#include "daemon/source/source.h"
#include "util/cancel.h"

/* PT that may be in memory before it is written, at least; a ring is copied as a whole all the
 * same. */
#define COPIED_MIN  (UINT64_C(256) << 20)
#define THREADS_MAX 8u

/* All threads do the same with different CPUs. */
struct pass {
	const struct ringcopy *rings;
	int (*one)(struct pass *p, uint32_t cpu);
	_Atomic uint64_t bytes;
	_Atomic uint32_t next; /* those before it are done, or somebody is at it */
	atomic_int error;
};

static int reserve_pt(struct pass *p, uint32_t cpu)
{
	const struct ringcopy *rings = p->rings;
	const struct source_ops *ops = rings->source->ops;
	const uint64_t room = ops->aux_room ? ops->aux_room(rings->source, cpu) : 0;

	cpucopy_reserve(&rings->cpus[cpu], room, atomic_load(&p->bytes) + room <= rings->large_max);
	return 0;
}

static int copy_pt(struct pass *p, uint32_t cpu)
{
	const struct ringcopy *rings = p->rings;

	if (cancel_asked(rings->cancel))
		return -ECANCELED;
	return cpucopy_pt(&rings->cpus[cpu], rings->source, cpu, rings->scope->since_ns);
}

/* One thread's part: those that are taken follow each other without a hole. */
static void *run_pass(void *userdata)
{
	struct pass *p = userdata;
	const struct ringcopy *rings = p->rings;
	const uint32_t n_cpus = rings->source->n_cpus;

	while (atomic_load(&p->error) == 0 && atomic_load(&p->bytes) < rings->bytes_max) {
		const uint32_t cpu = atomic_fetch_add(&p->next, 1);
		int r;

		if (cpu >= n_cpus)
			break;
		if (!scope_has_cpu(rings->scope, cpu))
			continue;
		r = p->one(p, cpu);
		atomic_fetch_add(&p->bytes, rings->cpus[cpu].pt_room);
		if (r < 0)
			atomic_store(&p->error, r);
	}
	return NULL;
}

static uint32_t count_threads(uint32_t n_cpus)
{
	const long online = sysconf(_SC_NPROCESSORS_ONLN);
	uint32_t n = online > 0 ? (uint32_t)online : 1;

	if (n > n_cpus)
		n = n_cpus;
	return n < THREADS_MAX ? n : THREADS_MAX;
}

/* We are one of the threads; if others cannot be had, it takes longer. */
static void run_in_threads(struct pass *p)
{
	const uint32_t n_cpus = p->rings->source->n_cpus - atomic_load(&p->next);
	const uint32_t wanted = count_threads(n_cpus) - 1;
	pthread_t threads[THREADS_MAX];
	uint32_t n = 0;

	while (n < wanted && pthread_create(&threads[n], NULL, run_pass, p) == 0)
		n++;
	(void)run_pass(p);
	while (n > 0)
		(void)pthread_join(threads[--n], NULL);
}

void ringcopy_prepare(struct ringcopy *ringcopy)
{
	const uint64_t part = meminfo_available() / 4;
	struct pass p = { .rings = ringcopy, .one = reserve_pt };

	ringcopy->bytes_max = part > COPIED_MIN ? part : COPIED_MIN;
	ringcopy->large_max = meminfo_large() / 2;
	run_in_threads(&p);
}

int ringcopy_some(const struct ringcopy *ringcopy, uint32_t first, uint32_t *ret_end)
{
	const uint32_t n_cpus = ringcopy->source->n_cpus;
	struct pass p = { .rings = ringcopy, .one = copy_pt, .next = first };
	uint32_t end;
	int r;

	run_in_threads(&p);
	r = atomic_load(&p.error);
	end = atomic_load(&p.next);
	end = end < n_cpus ? end : n_cpus;
	for (uint32_t i = first; r == 0 && i < end; i++)
		if (scope_has_cpu(ringcopy->scope, i))
			r = cpucopy_switches(&ringcopy->cpus[i], ringcopy->source, i,
					     ringcopy->scope->since_ns);
	*ret_end = end;
	return r;
}
