/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * ptd-nopt: ptd on a machine without PT, to measure what it costs while nobody asks. In the place
 * of each PT event is one that counts nothing, in that of its AUX area memory that nobody writes
 * to. The rings of switches and of tasks are the kernel's, and all that ptd does is what it does
 * with PT. Its snapshots have no PT.
 */

#include <errno.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <time.h>

#include "daemon/pt/pmu.h"
#include "daemon/source/ptclock.h"
#include "daemon/source/ring.h"

#define SHIFT 31u

bool __wrap_source_pt_exists(void);
int __wrap_pmu_read(const char *path, struct pmu *ret_pmu, const char **reterr_file);
uint64_t __wrap_pmu_config(const struct pmu *pmu, const struct ptterms *terms, pmu_warn_fn warn);
int __wrap_ring_map_aux(struct ring *ring, int fd, size_t aux_size);
int __wrap_ptclock_read(const struct perf_event_mmap_page *page, struct tsc_conv *ret_conv);
int __real_ptclock_read(const struct perf_event_mmap_page *page, struct tsc_conv *ret_conv);

bool __wrap_source_pt_exists(void)
{
	return true;
}

int __wrap_pmu_read(const char *path, struct pmu *ret_pmu, const char **reterr_file)
{
	(void)path;
	(void)reterr_file;
	*ret_pmu = (struct pmu){ .type = PERF_TYPE_SOFTWARE };
	return 0;
}

uint64_t __wrap_pmu_config(const struct pmu *pmu, const struct ptterms *terms, pmu_warn_fn warn)
{
	(void)pmu;
	(void)terms;
	(void)warn;
	return PERF_COUNT_SW_DUMMY;
}

int __wrap_ring_map_aux(struct ring *ring, int fd, size_t aux_size)
{
	void *map;

	(void)fd;
	map = mmap(NULL, aux_size, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (map == MAP_FAILED)
		return -errno;
	ring->aux = map;
	ring->aux_size = aux_size;
	return 0;
}

/* The records' clock is about CLOCK_MONOTONIC. Nothing is decoded by this. */
static struct tsc_conv guess(void)
{
	const struct ptclock_sample first = ptclock_sample();
	struct ptclock_sample second;
	struct tsc_conv c = { .valid = true, .shift = SHIFT };

	(void)nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
	second = ptclock_sample();
	c.mult = (uint32_t)(((second.monotonic_ns - first.monotonic_ns) << SHIFT) /
			    (second.tsc - first.tsc));
	c.zero = second.monotonic_ns - tsc_to_ns(&c, second.tsc);
	return c;
}

/* Many virtual machines have no such relation. */
int __wrap_ptclock_read(const struct perf_event_mmap_page *page, struct tsc_conv *ret_conv)
{
	if (__real_ptclock_read(page, ret_conv) < 0)
		*ret_conv = guess();
	return 0;
}
