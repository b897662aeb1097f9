/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Rings of a source that are held by hand: what is copied, and that no memory is gotten
 * meanwhile. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "daemon/proc/meminfo.h"
#include "daemon/sideband/scope.h"
#include "daemon/snapshot/cpucopy.h"
#include "daemon/snapshot/ringcopy.h"
#include "daemon/source/source.h"

#define N_CPUS    3u
#define RING_SIZE ((size_t)4 << 20)
#define PAGES     (N_CPUS * RING_SIZE / 4096)
#define SPLIT     12345u /* bytes of a ring that come last, at its start */

struct fixture {
	struct source source;
	uint64_t room;  /* that is worth having ready */
	uint8_t *rings; /* all of them */
	atomic_uint n_exact;
	struct scope scope;
	struct cpucopy cpus[N_CPUS];
	struct ringcopy ringcopy;
};

static uint64_t aux_room(struct source *source, uint32_t cpu)
{
	assert_true(cpu < N_CPUS);
	return ((struct fixture *)source)->room;
}

static int view(struct source *source, uint32_t cpu, uint64_t since_ns, bool exact,
		struct source_view *ret_view)
{
	struct fixture *f = (struct fixture *)source;
	const uint8_t *ring = f->rings + cpu * RING_SIZE;

	assert_int_equal(since_ns, f->scope.since_ns);
	*ret_view = (struct source_view){
		.a = ring + SPLIT,
		.a_size = RING_SIZE - SPLIT,
		.b = ring,
		.b_size = SPLIT,
		.head = RING_SIZE + SPLIT,
		.end = SOURCE_END_FLUSHED,
		.overwritten = exact ? cpu : 0,
	};
	atomic_fetch_add(&f->n_exact, exact);
	return 0;
}

static int copy_switches(struct source *source, uint32_t cpu, uint64_t since_ns,
			 uint8_t **ret_bytes, size_t *ret_size, bool *ret_cut)
{
	(void)source;
	(void)cpu;
	(void)since_ns;
	*ret_bytes = NULL;
	*ret_size = 0;
	*ret_cut = false;
	return 0;
}

static const struct source_ops ops = {
	.aux_room = aux_room,
	.view = view,
	.copy_switches = copy_switches,
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->room = RING_SIZE;
	f->source = (struct source){ .ops = &ops, .n_cpus = N_CPUS };
	f->rings = mmap(NULL, N_CPUS * RING_SIZE, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(f->rings != MAP_FAILED);
	for (size_t i = 0; i < N_CPUS * RING_SIZE; i++)
		f->rings[i] = (uint8_t)(i * 31 + i / 4096);
	f->ringcopy = (struct ringcopy){
		.source = &f->source,
		.cpus = f->cpus,
		.scope = &f->scope,
	};
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	for (uint32_t i = 0; i < N_CPUS; i++)
		cpucopy_deinit(&f->cpus[i]);
	(void)munmap(f->rings, N_CPUS * RING_SIZE);
	free(f);
	return 0;
}

static long faults(void)
{
	struct rusage usage;

	assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
	return usage.ru_minflt;
}

static void assert_copied(const struct fixture *f, uint32_t cpu)
{
	const uint8_t *ring = f->rings + cpu * RING_SIZE;
	const struct cpucopy *copy = &f->cpus[cpu];

	assert_int_equal(copy->pt_size, RING_SIZE);
	assert_int_equal(copy->pt_start, cpu);
	assert_int_equal(copy->pt_bytes, RING_SIZE - cpu);
	assert_memory_equal(copy->pt + cpu, ring + SPLIT + cpu, RING_SIZE - SPLIT - cpu);
	assert_memory_equal(copy->pt + RING_SIZE - SPLIT, ring, SPLIT);
}

/* Prepare, copy all and forget it. Return: faults while it was copied. */
static long copy_all(struct fixture *f)
{
	uint32_t end;
	long before, n;

	ringcopy_prepare(&f->ringcopy);
	f->n_exact = 0;
	before = faults();
	assert_int_equal(ringcopy_some(&f->ringcopy, 0, &end), 0);
	n = faults() - before;
	assert_int_equal(end, N_CPUS);
	assert_int_equal(f->n_exact, N_CPUS);
	for (uint32_t i = 0; i < N_CPUS; i++) {
		assert_copied(f, i);
		cpucopy_forget_pt(&f->cpus[i]);
		assert_null(f->cpus[i].pt);
		assert_int_equal(f->cpus[i].pt_room, 0);
	}
	return n;
}

/* As many faults as there are pages, or next to none. */
static void memory_is_ready(void **state)
{
	struct fixture *f = *state;

	/* The threads, and sanitizers, have memory of their own, which they get once. */
	(void)copy_all(f);
	assert_in_range(copy_all(f), 0, PAGES / 10);
	/* Of a source that does not say what it may hold, it is gotten when that is known. */
	f->room = 0;
	assert_true(copy_all(f) >= (long)PAGES);
}

static bool gives_large_pages(void)
{
	FILE *file = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "re");
	char text[64] = "";

	if (file) {
		(void)!fgets(text, sizeof(text), file);
		(void)fclose(file);
	}
	return strstr(text, "[madvise]") || strstr(text, "[always]");
}

/* A fault for each large page, not for each small one, if the kernel has so many to spare. */
static void in_large_pages(void **state)
{
	const bool has_many = gives_large_pages() && meminfo_large() / 16 > N_CPUS * RING_SIZE;
	struct fixture *f = *state;
	long n;

	(void)prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0);
	n = faults();
	ringcopy_prepare(&f->ringcopy);
	n = faults() - n;
	(void)prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	print_message("  %ld faults for %zu pages\n", n, PAGES);
	assert_in_range(n, 0, has_many ? PAGES / 10 : PAGES + PAGES / 10);
	for (uint32_t i = 0; i < N_CPUS; i++) {
		assert_int_equal(f->cpus[i].pt_room, RING_SIZE);
		assert_int_equal((uintptr_t)f->cpus[i].pt % ((size_t)2 << 20), 0);
	}
}

/* What does not fit in memory waits for the next time. */
static void some_at_a_time(void **state)
{
	struct fixture *f = *state;
	unsigned n = 0;

	ringcopy_prepare(&f->ringcopy);
	for (uint32_t i = 0; i < N_CPUS; i++)
		cpucopy_forget_pt(&f->cpus[i]);
	f->ringcopy.bytes_max = 1;
	for (uint32_t first = 0, end; first < N_CPUS; first = end, n++) {
		assert_int_equal(ringcopy_some(&f->ringcopy, first, &end), 0);
		assert_true(end > first);
		for (uint32_t i = first; i < end; i++) {
			assert_copied(f, i);
			cpucopy_forget_pt(&f->cpus[i]);
		}
	}
	assert_in_range(n, 1, N_CPUS);
}

static void scope(void **state)
{
	struct fixture *f = *state;
	uint32_t end;

	f->scope.some_cpus = true;
	assert_int_equal(cpulist_parse("1", &f->scope.cpus), 0);
	ringcopy_prepare(&f->ringcopy);
	assert_int_equal(ringcopy_some(&f->ringcopy, 0, &end), 0);
	assert_int_equal(end, N_CPUS);
	assert_int_equal(f->n_exact, 1);
	assert_copied(f, 1);
	assert_int_equal(f->cpus[0].pt_room + f->cpus[2].pt_room, 0);
}

static void cancelled(void **state)
{
	struct fixture *f = *state;
	const atomic_bool cancel = true;
	uint32_t end;

	f->ringcopy.cancel = &cancel;
	ringcopy_prepare(&f->ringcopy);
	assert_int_equal(ringcopy_some(&f->ringcopy, 0, &end), -ECANCELED);
	assert_int_equal(f->n_exact, 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(memory_is_ready, set_up, tear_down),
		cmocka_unit_test_setup_teardown(in_large_pages, set_up, tear_down),
		cmocka_unit_test_setup_teardown(some_at_a_time, set_up, tear_down),
		cmocka_unit_test_setup_teardown(scope, set_up, tear_down),
		cmocka_unit_test_setup_teardown(cancelled, set_up, tear_down),
	};

	/* Faults are to be counted page by page. */
	(void)prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
