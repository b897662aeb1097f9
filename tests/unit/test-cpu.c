/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * One CPU's events on the real kernel. What is of PT needs an intel_pt device and the right to use
 * it: the guest's tests run that. The sideband needs only the right to use perf.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "daemon/helper/keeper/link.h"
#include "daemon/pt/cpu.h"
#include "daemon/pt/pmu.h"
#include "daemon/pt/source_pt.h"
#include "daemon/source/source.h"
#include "util/perf/record.h"

static struct cpu_setup setup = {
	.user = true,
	.aux_size = 1 << 16,
	.switch_size = 1 << 16,
	.task_size = 1 << 18, /* whatever else is started on this CPU meanwhile */
};

static void sleep_ms(long ms)
{
	(void)nanosleep(&(struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 },
			NULL);
}

/* Return: how often this thread left a CPU. */
static unsigned count_switches(void)
{
	struct rusage usage;

	assert_int_equal(getrusage(RUSAGE_THREAD, &usage), 0);
	return (unsigned)(usage.ru_nvcsw + usage.ru_nivcsw);
}

/* Sleep @n times. Return: how often that took this thread from its CPU: a slow CPU finds that a
 * sleep is over before it begins. */
static unsigned sleep_often(unsigned n)
{
	const unsigned before = count_switches();
	unsigned n_switches;

	for (unsigned i = 0; i < n; i++)
		sleep_ms(1);
	n_switches = count_switches() - before;
	assert_true(n_switches > 0);
	return n_switches;
}

static int number; /* of the CPU that the tests use */

/* Find a CPU that this process may run on. */
static void choose_cpu(void)
{
	cpu_set_t set;

	assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
	while (!CPU_ISSET(number, &set))
		number++;
}

static void stay_on_it(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(number, &set);
	assert_int_equal(sched_setaffinity(0, sizeof(set), &set), 0);
}

static void open_sideband(struct cpu *cpu)
{
	cpu_init(cpu, (uint32_t)number);
	assert_int_equal(cpu_open_sideband(cpu, &setup), 0);
}

static void open_all(struct cpu *cpu)
{
	open_sideband(cpu);
	assert_int_equal(cpu_open_pt(cpu, &setup), 0);
	assert_int_equal(cpu->state, CPU_RECORDING);
}

static void alive(void **state)
{
	struct cpu cpu, second;

	(void)state;
	open_all(&cpu);
	for (int i = 0; i < 3; i++) {
		sleep_ms(50);
		assert_true(cpu_is_alive(&cpu));
	}
	cpu_publish_head(&cpu);
	cpu_find_overwritten(&cpu);
	sleep_ms(50);
	assert_true(cpu_is_alive(&cpu));

	/* One at a time can have it. */
	cpu_init(&second, (uint32_t)number);
	assert_int_equal(cpu_open_pt(&second, &setup), -EBUSY);
	assert_int_equal(second.state, CPU_BUSY);
	cpu_close(&cpu);
	assert_int_equal(cpu_open_pt(&second, &setup), 0);
	cpu_close(&second);
}

/* The trap that cpu_open_pt() avoids: nothing fails, and nothing runs. It is told by the time, and
 * opening anew mends it. */
static void enabled_before_it_is_mapped(void **state)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = setup.pmu_type,
		.config = setup.config,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
		.disabled = 1,
		.exclude_kernel = 1,
	};
	struct cpu cpu;

	(void)state;
	cpu_init(&cpu, (uint32_t)number);
	cpu.pt.fd = (int)syscall(SYS_perf_event_open, &attr, -1, number, -1, PERF_FLAG_FD_CLOEXEC);
	assert_true(cpu.pt.fd >= 0);
	assert_int_equal(ioctl(cpu.pt.fd, PERF_EVENT_IOC_ENABLE, 0), 0);
	assert_int_equal(ring_map(&cpu.pt.ring, cpu.pt.fd, 4096, false), 0);
	assert_int_equal(ring_map_aux(&cpu.pt.ring, cpu.pt.fd, setup.aux_size), 0);
	cpu.state = CPU_RECORDING;
	for (int i = 0; i < 3; i++) {
		sleep_ms(50);
		assert_false(cpu_is_alive(&cpu));
	}

	assert_int_equal(cpu_open_pt(&cpu, &setup), 0);
	sleep_ms(50);
	assert_true(cpu_is_alive(&cpu));
	cpu_close(&cpu);
}

/* Switches come oldest first, whole, with our id, and say who ran when PT was switched on. */
static void switches(void **state)
{
	uint64_t before = 0, n_own = 0, n_starts = 0;
	unsigned n_switches;
	struct record record;
	struct cpu cpu;
	struct cursor c;
	uint8_t *bytes;
	size_t size;
	bool cut;

	(void)state;
	stay_on_it();
	open_all(&cpu);
	n_switches = sleep_often(100);
	cpu_publish_head(&cpu);
	cpu_take_fingerprint(&cpu);
	assert_int_equal(cpu_copy_switches(&cpu, &bytes, &size, &cut), 0);
	assert_false(cut);
	c = cursor_from(bytes, size);
	while (record_next(&c, &record) == 0) {
		assert_true(record.trailer.time >= before);
		assert_int_equal(record.trailer.id, RECORD_ID_SIDEBAND);
		assert_int_equal(record.trailer.cpu, number);
		before = record.trailer.time;
		n_own += record.header.type == PERF_RECORD_SWITCH_CPU_WIDE &&
			 record.trailer.tid == (uint32_t)getpid();
		n_starts += record.header.type == PERF_RECORD_ITRACE_START;
	}
	assert_int_equal(cursor_left(&c), 0);
	assert_true(n_own >= 2 * n_switches); /* out, and in again */
	assert_int_equal(n_starts, 1);
	free(bytes);

	/* More of them than the ring holds: the oldest are gone, the others in order. */
	for (int i = 0; i < 1000; i++)
		(void)nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
	assert_int_equal(cpu_copy_switches(&cpu, &bytes, &size, &cut), 0);
	assert_true(cut);
	assert_true(size > setup.switch_size / 2 && size <= setup.switch_size);
	before = 0;
	c = cursor_from(bytes, size);
	while (record_next(&c, &record) == 0) {
		assert_true(record.trailer.time >= before);
		before = record.trailer.time;
	}
	assert_int_equal(cursor_left(&c), 0);
	free(bytes);
	cpu_close(&cpu);
}

static void tasks(void **state)
{
	_cleanup_(freep) uint8_t *bytes = malloc(setup.task_size);
	const char *program = access("/bin/busybox", X_OK) == 0 ? "/bin/busybox" : "/bin/true";
	unsigned n_forks = 0, n_execs = 0, n_exits = 0, n_maps = 0;
	struct record record;
	struct cpu cpu;
	struct cursor c;
	pid_t child;
	size_t size;

	(void)state;
	assert_non_null(bytes);
	stay_on_it();
	open_sideband(&cpu);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		(void)execl(program, "true", (char *)NULL);
		_exit(1);
	}
	assert_int_equal(waitpid(child, NULL, 0), child);

	/* What is not found is not taken; what is newer than the time asked for stays. */
	assert_int_equal(cpu_drain_tasks(&cpu, UINT64_MAX, bytes), 0);
	size = cpu_tasks_size(&cpu);
	assert_true(size > 0 && size < setup.task_size);
	assert_int_equal(cpu_drain_tasks(&cpu, 1, bytes), 0);
	size = cpu_drain_tasks(&cpu, UINT64_MAX, bytes);
	c = cursor_from(bytes, size);
	while (record_next(&c, &record) == 0) {
		struct record_mmap2 mmap;
		struct record_task task;

		n_forks += record.header.type == PERF_RECORD_FORK &&
			   record_get_task(&record, &task) == 0 && task.pid == (uint32_t)child;
		n_exits += record.header.type == PERF_RECORD_EXIT &&
			   record_get_task(&record, &task) == 0 && task.pid == (uint32_t)child;
		n_execs += record.header.type == PERF_RECORD_COMM &&
			   record.header.misc & PERF_RECORD_MISC_COMM_EXEC &&
			   record.trailer.pid == (uint32_t)child;
		if (record_get_mmap2(&record, &mmap) == 0 && mmap.pid == (uint32_t)child &&
		    strstr(mmap.name, strrchr(program, '/')))
			n_maps++;
	}
	assert_int_equal(cursor_left(&c), 0);
	assert_int_equal(n_forks, 1);
	assert_int_equal(n_execs, 1);
	assert_int_equal(n_exits, 1);
	assert_int_equal(n_maps, 1);
	/* They were taken. Others may have run meanwhile. */
	(void)cpu_tasks_size(&cpu);
	c = cursor_from(bytes, cpu_drain_tasks(&cpu, UINT64_MAX, bytes));
	while (record_next(&c, &record) == 0)
		assert_int_not_equal(record.trailer.pid, child);
	cpu_close(&cpu);
}

/* Of a process's children, by events that each of them inherits: nothing of anybody else. */
static void children(void **state)
{
	const struct cpu_setup own = { .user = true,
				       .parent = getpid(),
				       .switch_size = setup.switch_size,
				       .task_size = setup.task_size };
	_cleanup_(freep) uint8_t *bytes = malloc(setup.task_size), *switched = NULL;
	unsigned n_execs = 0, n_switches = 0;
	struct record record;
	struct cpu cpu;
	struct cursor c;
	pid_t child;
	size_t size;
	bool cut;

	(void)state;
	assert_non_null(bytes);
	stay_on_it();
	cpu_init(&cpu, (uint32_t)number);
	assert_int_equal(cpu_open_sideband(&cpu, &own), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		sleep_ms(1);
		(void)execl("/bin/true", "true", (char *)NULL);
		_exit(1);
	}
	assert_int_equal(waitpid(child, NULL, 0), child);
	/* Its time stands still. */
	assert_true(cpu_sideband_is_alive(&cpu) && cpu_is_alive(&cpu));

	(void)cpu_tasks_size(&cpu);
	c = cursor_from(bytes, cpu_drain_tasks(&cpu, UINT64_MAX, bytes));
	while (record_next(&c, &record) == 0) {
		assert_true(record.trailer.pid == (uint32_t)child ||
			    record.trailer.pid == (uint32_t)getpid());
		n_execs += record.header.type == PERF_RECORD_COMM &&
			   record.header.misc & PERF_RECORD_MISC_COMM_EXEC &&
			   record.trailer.pid == (uint32_t)child;
	}
	assert_int_equal(n_execs, 1);
	assert_int_equal(cpu_copy_switches(&cpu, &switched, &size, &cut), 0);
	assert_false(cut);
	c = cursor_from(switched, size);
	while (record_next(&c, &record) == 0) {
		assert_int_equal(record.header.type, PERF_RECORD_SWITCH);
		n_switches += record.trailer.pid == (uint32_t)child;
	}
	assert_int_equal(cursor_left(&c), 0);
	/* It came, and left at least once; on a slow machine its sleep is over before it begins. */
	assert_true(n_switches >= 2);
	cpu_close(&cpu);
}

/* The kernel refuses a record, and says so only with the next one. */
static void tasks_missed(void **state)
{
	_cleanup_(freep) uint8_t *bytes = malloc(setup.task_size);
	struct cursor c;
	struct record record;
	struct cpu cpu;

	(void)state;
	assert_non_null(bytes);
	stay_on_it();
	open_sideband(&cpu);
	assert_false(cpu_may_have_missed(&cpu));
	for (size_t i = 0; i < setup.task_size / 32; i++)
		assert_int_equal(prctl(PR_SET_NAME, i % 2 ? "a" : "b"), 0);
	assert_true(cpu_tasks_size(&cpu) > 0);
	c = cursor_from(bytes, cpu_drain_tasks(&cpu, UINT64_MAX, bytes));
	while (record_next(&c, &record) == 0)
		assert_int_not_equal(record.header.type, PERF_RECORD_LOST);
	assert_true(cpu_may_have_missed(&cpu));
	assert_false(cpu_may_have_missed(&cpu));
	cpu_give_room(&cpu);
	assert_false(cpu_may_have_missed(&cpu));
	cpu_close(&cpu);
}

/* They need no PT, and are opened once. */
static void switches_without_pt(void **state)
{
	_cleanup_(freep) uint8_t *bytes = NULL;
	unsigned n_switches, n_own = 0;
	uint64_t before = 0;
	struct record record;
	struct cpu cpu;
	struct cursor c;
	size_t size;
	bool cut;

	(void)state;
	stay_on_it();
	open_sideband(&cpu);
	n_switches = sleep_often(20);
	assert_int_equal(cpu_open_sideband(&cpu, &setup), 0);
	assert_true(cpu_sideband_is_alive(&cpu));
	assert_int_equal(cpu_copy_switches(&cpu, &bytes, &size, &cut), 0);
	c = cursor_from(bytes, size);
	while (record_next(&c, &record) == 0) {
		assert_int_equal(record.header.type, PERF_RECORD_SWITCH_CPU_WIDE);
		assert_true(record.trailer.time >= before);
		assert_int_equal(record.trailer.id, RECORD_ID_SIDEBAND);
		assert_int_equal(record.trailer.cpu, number);
		before = record.trailer.time;
		n_own += record.trailer.tid == (uint32_t)getpid();
	}
	assert_int_equal(cursor_left(&c), 0);
	/* Where many others run, the ring may be too small for all. */
	assert_true(n_own >= 2 * n_switches || cut);
	cpu_close(&cpu);
	assert_int_equal(cpu_tasks_size(&cpu), 0);
}

/* What the keeper does: it holds the event and maps its rings. */
struct keeping {
	struct keepable kept;
	void *data, *aux;
};

static size_t with_page(size_t size)
{
	return size + (size_t)sysconf(_SC_PAGESIZE);
}

static struct keeping keep(const struct cpu_event *event)
{
	const struct ring *ring = &event->ring;
	struct keeping k = { .kept = { .fd = dup(event->fd),
				       .data_size = ring->data_size,
				       .aux_size = ring->aux_size } };

	assert_return_code(k.kept.fd, errno);
	k.data = mmap(NULL, with_page(ring->data_size), PROT_READ, MAP_SHARED, k.kept.fd, 0);
	assert_ptr_not_equal(k.data, MAP_FAILED);
	if (ring->aux_size == 0)
		return k;
	k.aux = mmap(NULL, ring->aux_size, PROT_READ, MAP_SHARED, k.kept.fd,
		     (off_t)with_page(ring->data_size));
	assert_ptr_not_equal(k.aux, MAP_FAILED);
	return k;
}

static void release(const struct keeping *k)
{
	assert_int_equal(munmap(k->data, with_page(k->kept.data_size)), 0);
	if (k->aux)
		assert_int_equal(munmap(k->aux, k->kept.aux_size), 0);
}

/* Return: the task records of @child that the CPU gives now. */
static unsigned count_of(struct cpu *cpu, pid_t child, uint8_t *bytes)
{
	struct record record;
	struct cursor c;
	unsigned n = 0;

	(void)cpu_tasks_size(cpu);
	c = cursor_from(bytes, cpu_drain_tasks(cpu, UINT64_MAX, bytes));
	while (record_next(&c, &record) == 0)
		n += record.trailer.pid == (uint32_t)child;
	return n;
}

static pid_t run_child(void)
{
	const pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0)
		_exit(0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	return child;
}

/* Each task record is taken once, whether the one before has given back its room or not. */
static void sideband_of_another_process(void **state)
{
	_cleanup_(freep) uint8_t *bytes = malloc(setup.task_size);
	struct keeping switches, tasks;
	struct cpu first, cpu;
	pid_t taken, left;
	uint64_t id, tail;
	size_t size;
	bool cut;

	(void)state;
	assert_non_null(bytes);
	stay_on_it();
	open_sideband(&first);
	for (int given = 0; given < 2; given++) {
		taken = run_child();
		assert_true(count_of(&first, taken, bytes) > 0);
		if (given)
			cpu_give_room(&first);
		id = first.tasks.id;
		tail = first.tasks_tail;
		left = run_child();
		switches = keep(&first.switches);
		tasks = keep(&first.tasks);
		cpu_close(&first);

		cpu_init(&cpu, (uint32_t)number);
		assert_int_equal(cpu_adopt_sideband(&cpu, &switches.kept, &tasks.kept), 0);
		release(&switches);
		release(&tasks);
		assert_false(cpu_resume_tasks(&cpu, id + 1, tail));
		assert_false(cpu_resume_tasks(&cpu, id, ring_data_head(&cpu.tasks.ring) + 1));
		assert_true(cpu_resume_tasks(&cpu, id, tail));
		assert_int_equal(count_of(&cpu, taken, bytes), 0);
		cpu.tasks_tail = tail;
		assert_true(count_of(&cpu, left, bytes) > 0);
		cpu_give_room(&cpu);
		/* They were given back by one that did not say so. */
		assert_false(cpu_resume_tasks(&cpu, id, tail));
		assert_true(cpu_sideband_is_alive(&cpu));
		free(bytes);
		assert_int_equal(cpu_copy_switches(&cpu, &bytes, &size, &cut), 0);
		assert_true(size > 0);
		free(bytes);
		bytes = malloc(setup.task_size);
		assert_non_null(bytes);
		first = cpu;
	}
	cpu_close(&first);

	/* Nothing that is no event is taken for one. */
	cpu_init(&cpu, (uint32_t)number);
	assert_int_equal(cpu_adopt_sideband(&cpu,
					    &(struct keepable){ .fd = dup(0), .data_size = 4096 },
					    &(struct keepable){ .fd = -1, .data_size = 4096 }) < 0,
			 true);
	assert_int_equal(cpu.tasks.fd, -1);
}

/* Its contents are there, with who ran when PT was switched on, and PT that was left off is on. */
static void pt_of_another_process(void **state)
{
	_cleanup_(freep) uint8_t *old = malloc(setup.aux_size);
	struct keeping pt;
	struct cpu first, cpu;
	uint64_t head;

	(void)state;
	assert_non_null(old);
	stay_on_it();
	cpu_init(&first, (uint32_t)number);
	assert_int_equal(cpu_open_pt(&first, &setup), 0);
	cpu_publish_head(&first);
	cpu_take_fingerprint(&first);
	assert_true(first.start.seen);
	for (int off = 0; off < 2; off++) {
		/* The kernel's room for records is exhausted by that many stops. */
		for (int i = 0; i < 200; i++)
			cpu_publish_head(&first);
		if (off)
			assert_int_equal(ioctl(first.pt.fd, PERF_EVENT_IOC_DISABLE, 0), 0);
		head = ring_aux_head(&first.pt.ring);
		memcpy(old, first.pt.ring.aux, setup.aux_size);
		pt = keep(&first.pt);
		cpu_close(&first);

		cpu_init(&cpu, (uint32_t)number);
		assert_int_equal(cpu_adopt_pt(&cpu, &pt.kept), 0);
		release(&pt);
		assert_int_equal(cpu.state, CPU_RECORDING);
		assert_memory_equal(cpu.pt.ring.aux, old, head);
		(void)cpu_is_alive(&cpu);
		sleep_ms(50);
		assert_true(cpu_is_alive(&cpu));
		cpu_publish_head(&cpu);
		cpu_take_fingerprint(&cpu);
		assert_true(cpu.start.seen);
		assert_true(cpu.pos.written >= head);
		first = cpu;
	}
	cpu_close(&first);
	cpu_init(&cpu, (uint32_t)number);
	assert_true(cpu_adopt_pt(&cpu, &(struct keepable){ .fd = dup(0), .data_size = 4096 }) < 0);
	assert_int_equal(cpu.pt.fd, -1);
	assert_int_equal(cpu.state, CPU_CLOSED);
}

/* Return: whether perf may be used here. */
static bool has_perf(void)
{
	struct perf_event_attr attr = { .size = sizeof(attr),
					.type = PERF_TYPE_SOFTWARE,
					.config = PERF_COUNT_SW_DUMMY,
					.exclude_kernel = 1 };
	const long fd = syscall(SYS_perf_event_open, &attr, -1, number, -1, PERF_FLAG_FD_CLOEXEC);

	return fd >= 0 && close((int)fd) == 0;
}

int main(void)
{
	static const struct CMUnitTest of_pt[] = {
		cmocka_unit_test(alive),
		cmocka_unit_test(enabled_before_it_is_mapped),
		cmocka_unit_test(switches),
		cmocka_unit_test(pt_of_another_process),
	};
	static const struct CMUnitTest of_sideband[] = {
		cmocka_unit_test(switches_without_pt),
		cmocka_unit_test(tasks),
		cmocka_unit_test(children),
		cmocka_unit_test(tasks_missed),
		cmocka_unit_test(sideband_of_another_process),
	};
	struct ptterms terms;
	const char *file;
	struct pmu pmu;
	int r;

	choose_cpu();
	if (geteuid() != 0 || !has_perf()) {
		puts("SKIP: perf may not be used here; the guest's tests run this");
		return 77;
	}
	r = cmocka_run_group_tests(of_sideband, NULL, NULL);
	if (pmu_read(SOURCE_PT_DEVICE, &pmu, &file) < 0) {
		puts("no Intel PT here: the guest's tests run the rest");
		return r;
	}
	ptterms_init(&terms);
	setup.pmu_type = pmu.type;
	setup.config = pmu_config(&pmu, &terms, NULL);
	return r | cmocka_run_group_tests(of_pt, NULL, NULL);
}
