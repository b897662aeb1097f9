/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Rings of three CPUs that hold what is said here, in place of daemon/pt/cpu.c. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/pt/cpus.h"
#include "daemon/pt/taskrings.h"
#include "tests/lib/failing.h"
#include "tests/unit/records.h"

#define N_CPUS 3

static struct records rings[N_CPUS];
static uint32_t full = N_CPUS; /* the CPU whose ring is */
static uint64_t taken_until;

size_t cpu_tasks_size(struct cpu *cpu)
{
	return rings[cpu->number].size;
}

size_t cpu_drain_tasks(struct cpu *cpu, uint64_t until, uint8_t *bytes)
{
	struct records *ring = &rings[cpu->number];
	const size_t size = ring->size;

	taken_until = until;
	if (size > 0)
		memcpy(bytes, ring->bytes, size);
	ring->size = 0;
	return size;
}

bool cpu_may_have_missed(struct cpu *cpu)
{
	return cpu->number == full;
}

struct fixture {
	struct cpus cpus;
	struct cpu items[N_CPUS];
	uint8_t *bytes;
	size_t size;
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	for (uint32_t i = 0; i < N_CPUS; i++)
		f->items[i].number = i;
	f->cpus = (struct cpus){ .items = f->items, .n = N_CPUS };
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	for (size_t i = 0; i < N_CPUS; i++)
		records_deinit(&rings[i]);
	free(*state);
	return 0;
}

/* Two records of each CPU, whose times interleave; and two of the same time. */
static void fill(void)
{
	records_comm(&rings[0], 10, "a", 5);
	records_comm(&rings[0], 11, "b", 9);
	records_comm(&rings[2], 12, "c", 1);
	records_fork(&rings[2], 13, 1, 7);
	records_comm(&rings[1], 14, "d", 7);
	records_comm(&rings[1], 15, "e", 7);
}

static int drain(void *userdata)
{
	struct fixture *f = userdata;
	int r;

	f->bytes = (uint8_t *)0x1;
	r = taskrings_drain(&f->cpus, 77, &f->bytes, &f->size);
	if (r < 0) {
		assert_null(f->bytes);
		assert_int_equal(f->size, 0);
	}
	return r;
}

static void assert_order(const struct fixture *f, const uint32_t *pids, size_t n)
{
	struct cursor c = cursor_from(f->bytes, f->size);
	struct record record;

	for (size_t i = 0; i < n; i++) {
		assert_int_equal(record_next(&c, &record), 0);
		if (pids[i])
			assert_int_equal(record.trailer.pid, pids[i]);
		else
			assert_int_equal(record.header.type, PERF_RECORD_LOST);
	}
	assert_int_equal(record_next(&c, &record), RECORD_END);
}

static void in_order(void **state)
{
	static const uint32_t pids[] = { 12, 10, 14, 15, 13, 11 };
	struct fixture *f = *state;

	assert_int_equal(drain(f), 0);
	assert_null(f->bytes);
	assert_int_equal(f->size, 0);
	fill();
	assert_int_equal(drain(f), 0);
	assert_int_equal(taken_until, 77);
	assert_order(f, pids, ARRAY_LEN(pids));
	free(f->bytes);
}

/* That some were lost is said once, at the end of what there is; also if there is nothing. */
static void lost(void **state)
{
	static const uint32_t pids[] = { 12, 10, 14, 15, 13, 11, 0 };
	struct fixture *f = *state;

	fill();
	f->cpus.lost = true;
	assert_int_equal(drain(f), 0);
	assert_order(f, pids, ARRAY_LEN(pids));
	assert_false(f->cpus.lost);
	free(f->bytes);

	f->cpus.lost = true;
	assert_int_equal(drain(f), 0);
	assert_order(f, pids + 6, 1);
	assert_false(f->cpus.lost);
	free(f->bytes);

	fill();
	full = 0;
	assert_int_equal(drain(f), 0);
	full = N_CPUS;
	assert_order(f, pids, ARRAY_LEN(pids));
	assert_false(f->cpus.lost);
	free(f->bytes);
}

static int fill_and_drain(void *userdata)
{
	struct fixture *f = userdata;
	size_t sizes[N_CPUS];
	int r;

	f->cpus.lost = false;
	for (size_t i = 0; i < N_CPUS; i++)
		sizes[i] = rings[i].size;
	r = drain(f);
	/* Either it is all still there, or it is said that it is lost. */
	for (size_t i = 0; r < 0 && i < N_CPUS; i++)
		assert_true(f->cpus.lost || rings[i].size == sizes[i]);
	for (size_t i = 0; i < N_CPUS; i++)
		rings[i].size = sizes[i];
	return r;
}

static void is_drained(void *userdata)
{
	struct fixture *f = userdata;

	assert_order(f, (uint32_t[]){ 12, 10, 14, 15, 13, 11 }, 6);
	free(f->bytes);
}

static void calls_that_fail(void **state)
{
	fill();
	failing_each(fill_and_drain, is_drained, *state);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(in_order, set_up, tear_down),
		cmocka_unit_test_setup_teardown(lost, set_up, tear_down),
		cmocka_unit_test_setup_teardown(calls_that_fail, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
