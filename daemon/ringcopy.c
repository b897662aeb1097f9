/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/ringcopy.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <unistd.h>

#include "daemon/cpucopy.h"
#include "daemon/meminfo.h"
#include "daemon/scope.h"
#include "daemon/source.h"

/* PT that may be in memory before it is written, at least; a ring is copied as a whole all the same. */
#define COPIED_MIN  (UINT64_C(256) << 20)
#define THREADS_MAX 8u

struct pass {
	const struct ringcopy *rings;
	uint64_t bytes_max;
	_Atomic uint64_t bytes;
	_Atomic uint32_t next; /* those before it are copied, or somebody is at it */
	atomic_int error;
};

static void heads_since(const struct ringcopy *rings, uint32_t cpu, uint64_t *ret_pt,
			uint64_t *ret_switches)
{
	*ret_pt = *ret_switches = 0;
	if (rings->scope->since_ns > 0)
		rings->source->ops->marked(rings->source, cpu, rings->scope->since_ns, ret_pt,
					   ret_switches);
}

static int copy_pt(const struct ringcopy *rings, uint32_t cpu)
{
	uint64_t pt_since, switches_since;

	if (rings->cancel && atomic_load(rings->cancel))
		return -ECANCELED;
	heads_since(rings, cpu, &pt_since, &switches_since);
	return cpucopy_pt(&rings->cpus[cpu], rings->source, cpu, pt_since);
}

/* One thread's part: those that are taken follow each other without a hole. */
static void *copy(void *userdata)
{
	struct pass *p = userdata;
	const struct ringcopy *rings = p->rings;
	const uint32_t n_cpus = rings->source->n_cpus;

	while (atomic_load(&p->error) == 0 && atomic_load(&p->bytes) < p->bytes_max) {
		const uint32_t cpu = atomic_fetch_add(&p->next, 1);
		int r;

		if (cpu >= n_cpus)
			break;
		if (!scope_has_cpu(rings->scope, cpu))
			continue;
		r = copy_pt(rings, cpu);
		atomic_fetch_add(&p->bytes, rings->cpus[cpu].pt_size);
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
static void copy_in_threads(struct pass *p, uint32_t n_cpus)
{
	const uint32_t wanted = count_threads(n_cpus) - 1;
	pthread_t threads[THREADS_MAX];
	uint32_t n = 0;

	while (n < wanted && pthread_create(&threads[n], NULL, copy, p) == 0)
		n++;
	(void)copy(p);
	while (n > 0)
		(void)pthread_join(threads[--n], NULL);
}

int ringcopy_some(const struct ringcopy *ringcopy, uint32_t first, uint32_t *ret_end)
{
	const uint64_t available = meminfo_available();
	struct source *source = ringcopy->source;
	struct pass p = {
		.rings = ringcopy,
		.bytes_max = available / 4 > COPIED_MIN ? available / 4 : COPIED_MIN,
		.next = first,
	};
	uint32_t end;
	int r;

	copy_in_threads(&p, source->n_cpus - first);
	r = atomic_load(&p.error);
	end = atomic_load(&p.next);
	end = end < source->n_cpus ? end : source->n_cpus;
	for (uint32_t i = first; r == 0 && i < end; i++) {
		uint64_t pt_since, switches_since;

		if (!scope_has_cpu(ringcopy->scope, i))
			continue;
		heads_since(ringcopy, i, &pt_since, &switches_since);
		r = cpucopy_switches(&ringcopy->cpus[i], source, i, switches_since);
	}
	*ret_end = end;
	return r;
}
