/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The software source as the daemon sees it, with a program's side played by hand: also by a
 * program that scribbles over the pool. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "daemon/config/config.h"
#include "daemon/plugin/coderecord.h"
#include "daemon/plugin/pool.h"
#include "daemon/soft/source_emu.h"
#include "daemon/source/ring.h"
#include "tests/lib/logged.h"
#include "tests/lib/tempdir.h"
#include "tests/unit/otheruser.h"
#include "tests/unit/records.h"

#define RING UINT64_C(16384)
#define GONE UINT32_C(0x7ffffff0) /* no process has such a number */

/* The pool, mapped as a program maps it. */
struct fixture {
	char dir[TEMPDIR_SIZE];
	struct source *source;
	struct emu_pool *pool;
	struct emu_pool_layout layout;
	size_t size;
	struct source_moment moment; /* of the last hold */
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct config config;
	struct stat st;
	int fd;

	tempdir_make("source_emu", f->dir);
	config_init(&config);
	config.n_cpus = 2;
	config.aux_size = config.switch_size = config.task_size = RING;
	assert_int_equal(source_emu_new(&config, NULL, &f->source), 0);
	fd = source_emu_share(f->source, false);
	assert_int_equal(fstat(fd, &st), 0);
	f->size = (size_t)st.st_size;
	f->pool = mmap(NULL, f->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(f->pool != MAP_FAILED);
	f->layout = f->pool->header.layout;
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	(void)munmap(f->pool, f->size);
	(void)f->source->ops->free(f->source);
	tempdir_remove(f->dir);
	free(f);
	return 0;
}

static struct emu_cpu *cpu_at(struct fixture *f, uint32_t cpu)
{
	return (struct emu_cpu *)((uint8_t *)f->pool + emu_cpu_offset(&f->layout, cpu));
}

/* Write to a ring as a program does. The n-th byte ever written to it is n. */
static void write_aux(struct fixture *f, uint32_t cpu, uint64_t n)
{
	uint8_t *ring = (uint8_t *)f->pool + emu_aux_offset(&f->layout, cpu);
	const uint64_t head = cpu_at(f, cpu)->aux_head;

	for (uint64_t i = head; i < head + n; i++)
		ring[i & (RING - 1)] = (uint8_t)i;
	cpu_at(f, cpu)->aux_head = head + n;
}

static void write_tasks(struct fixture *f, const struct records *r)
{
	uint8_t *ring = (uint8_t *)f->pool + emu_task_offset(&f->layout);
	const uint64_t head = f->pool->task_head;

	for (size_t i = 0; i < r->size; i++)
		ring[(head + i) & (RING - 1)] = r->bytes[i];
	f->pool->task_head = head + r->size;
}

/* What is written is what is drained. */
static void assert_drained(struct fixture *f, const struct records *r)
{
	uint8_t *bytes;
	size_t size;

	write_tasks(f, r);
	assert_int_equal(f->source->ops->drain(f->source, SOURCE_TASKS, &bytes, &size), 0);
	f->source->ops->give_room(f->source);
	assert_int_equal(size, r->size);
	assert_memory_equal(bytes, r->bytes, r->size);
	free(bytes);
}

static void the_pool(void **state)
{
	struct fixture *f = *state;
	const int fd = source_emu_share(f->source, false);

	assert_int_equal(f->pool->header.magic, EMU_POOL_MAGIC);
	assert_int_equal(f->pool->header.version, EMU_POOL_VERSION);
	assert_int_equal(f->layout.n_cpus, 4);
	assert_int_equal(f->source->n_cpus, 4);
	assert_int_equal(f->source->ops->status(f->source).n_online, 4);
	assert_int_equal(f->layout.n_busy_max, 2);
	assert_int_equal(f->size, emu_pool_size(&f->layout));
	assert_int_equal(f->layout.psb_period, 4096);
	assert_true(f->layout.return_compression);

	/* Nobody can take the memory away from under us. */
	assert_int_equal(ftruncate(fd, 0), -1);
	assert_int_equal(ftruncate(fd, (off_t)f->size * 2), -1);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
}

static uint64_t monotonic_ns(void)
{
	struct timespec now;

	assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &now), 0);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void views(void **state)
{
	static const struct {
		uint64_t written;
		size_t a_size, b_size;
	} rows[] = {
		{ 0, 0, 0 },           { 100, 100, 0 },
		{ RING, RING, 0 },     { RING + 100, RING - 100, 100 },
		{ 2 * RING, RING, 0 }, { 2 * RING + 1, RING - 1, 1 },
	};
	struct fixture *f = *state;
	uint64_t before;
	struct source_view v;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		write_aux(f, 1, rows[i].written - cpu_at(f, 1)->aux_head);
		before = monotonic_ns();
		assert_int_equal(f->source->ops->hold(f->source, &f->moment), 0);
		assert_in_range(f->moment.complete_until_ns, before, f->moment.ns);
		/* What comes after the hold is not in it. */
		assert_int_equal(f->source->ops->view(f->source, 1, 0, true, &v), 0);
		assert_int_equal(v.head, rows[i].written);
		assert_int_equal(f->source->ops->status(f->source).bytes_held, v.a_size + v.b_size);
		assert_int_equal(v.a_size, rows[i].a_size);
		assert_int_equal(v.b_size, rows[i].b_size);
		for (size_t k = 0; k < v.a_size + v.b_size; k++) {
			const uint8_t byte = k < v.a_size ? v.a[k] : v.b[k - v.a_size];

			assert_int_equal(byte, (uint8_t)(v.head - v.a_size - v.b_size + k));
		}
	}
	assert_int_equal(f->source->ops->view(f->source, 0, 0, true, &v), 0);
	assert_int_equal(v.a_size + v.b_size, 0);
}

static void what_the_writer_reached(void **state)
{
	static const struct {
		uint64_t before, after; /* heads */
		bool owned;
		uint64_t expected;
	} rows[] = {
		{ 100, 100, false, 0 },          { 100, 100, true, 0 },
		{ 100, 5000, true, 0 },          { RING, RING, false, 0 },
		{ RING, RING, true, 4096 }, /* may be writing what it has not published */
		{ RING, RING + 10, false, 10 },  { RING, RING + 10, true, 4106 },
		{ RING - 50, RING, false, 0 },   { RING - 50, RING + 10, false, 10 },
		{ RING, 2 * RING, false, RING }, { RING, 9 * RING, true, RING },
		{ RING, RING - 1, false, RING }, /* scribbled */
		{ 100, 0, false, 100 },          { RING, UINT64_MAX, true, RING },
	};
	struct fixture *f = *state;
	struct source_view v;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		cpu_at(f, 0)->owner = 0;
		cpu_at(f, 0)->aux_head = rows[i].before;
		assert_int_equal(f->source->ops->hold(f->source, &f->moment), 0);
		cpu_at(f, 0)->aux_head = rows[i].after;
		cpu_at(f, 0)->owner = rows[i].owned;
		assert_int_equal(f->source->ops->view(f->source, 0, 0, true, &v), 0);
		assert_int_equal(v.overwritten, rows[i].expected);
	}
}

static size_t blocks_of(struct fixture *f)
{
	struct stat st;

	assert_int_equal(fstat(source_emu_share(f->source, false), &st), 0);
	return (size_t)st.st_blocks;
}

/* A head that is scribbled makes nothing of what was never written: reading that would allocate
 * it. */
static void never_written(void **state)
{
	static const struct {
		uint64_t written_at, n, head, expected;
	} rows[] = {
		{ 0, 0, RING, 0 },
		{ 0, 0, 5 * RING + 100, 0 },
		{ 0, 4096, 4096, 4096 },
		{ 0, 4096, RING, 0 },
		{ RING - 4096, 4096, RING, 4096 },
		{ 0, 4096, RING + 4096, 4096 },
		{ 0, 100, RING + 100, 100 },
		{ 0, RING, 3 * RING + 5, RING },
	};
	struct fixture *f = *state;
	const uint64_t at = emu_aux_offset(&f->layout, 0);
	const int fd = source_emu_share(f->source, false);
	struct source_view v;
	size_t before;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		print_message("  row %zu\n", i);
		assert_int_equal(
		    fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)at, RING), 0);
		if (rows[i].n > 0)
			memset((uint8_t *)f->pool + at + rows[i].written_at, 1, rows[i].n);
		cpu_at(f, 0)->aux_head = rows[i].head;
		cpu_at(f, 0)->switch_head = cpu_at(f, 0)->event_head = rows[i].head;
		before = blocks_of(f);
		assert_int_equal(f->source->ops->hold(f->source, &f->moment), 0);
		assert_int_equal(f->source->ops->view(f->source, 0, 0, true, &v), 0);
		assert_int_equal(v.a_size + v.b_size, rows[i].expected);
		assert_int_equal(v.head, rows[i].head);
		for (size_t k = 0; k < v.a_size + v.b_size; k++) {
			uint8_t byte;

			ring_copy(&v, k, 1, &byte);
			assert_int_equal(byte, 1);
		}
		assert_int_equal(blocks_of(f), before);
	}
}

/* An owner that does not answer is not waited for. */
static void holding(void **state)
{
	struct fixture *f = *state;
	const uint32_t before = f->pool->flush;

	cpu_at(f, 0)->owner = 1;
	cpu_at(f, 0)->aux_head = 77;
	assert_int_equal(f->source->ops->hold(f->source, &f->moment), 0);
	assert_int_equal(f->pool->flush, before + 1);
}

static uint64_t clock_ns; /* 0: it is the system's */

/* The linker prefers this one. */
int clock_gettime(clockid_t id, struct timespec *ret_time)
{
	if (clock_ns == 0)
		return (int)syscall(SYS_clock_gettime, id, ret_time);
	*ret_time = (struct timespec){ .tv_nsec = (long)clock_ns };
	return 0;
}

/* With other heads for each @time. */
static void bookmark_at(struct fixture *f, uint64_t time)
{
	cpu_at(f, 1)->aux_head = 1000 + time;
	cpu_at(f, 1)->switch_head = 448 + 56 * time;
	clock_ns = time;
	assert_true(source_emu_share(f->source, false) >= 0);
	clock_ns = 0;
}

static void assert_since(struct fixture *f, uint64_t time, uint64_t head)
{
	struct source_view v;

	assert_int_equal(f->source->ops->view(f->source, 1, time, false, &v), 0);
	assert_int_equal(v.since, head);
}

/* Where the rings were when something began; of the time before the first bookmark that is
 * remembered nothing is known, so they count from their beginning. */
static void bookmarks(void **state)
{
	enum { N = 100, N_KEPT = 16 };
	struct fixture *f = *state;

	cpu_at(f, 1)->encode.next_psb = 4096;
	/* The first is of when the fixture was made. */
	for (uint64_t i = 1; i <= N; i++)
		bookmark_at(f, 10 * i);
	assert_int_equal(f->source->ops->hold(f->source, &f->moment), 0);
	/* Whoever takes the CPU next begins with a PSB. */
	assert_int_equal(cpu_at(f, 1)->encode.next_psb, 1);
	assert_int_equal(cpu_at(f, 1)->owner, 0);

	assert_since(f, 0, 0);
	assert_since(f, UINT64_MAX, 1000 + 10 * N);
	for (uint64_t i = N; i > N - N_KEPT; i--) {
		assert_since(f, 10 * i, 1000 + 10 * i);
		if (i > N - N_KEPT + 1)
			assert_since(f, 10 * i - 1, 990 + 10 * i);
	}
	assert_since(f, UINT64_C(10) * (N - N_KEPT + 1) - 1, 0);
	assert_since(f, 10, 0);
}

/* Write to a switch ring as a program does. */
static void write_switches(struct fixture *f, uint32_t cpu, const struct records *r)
{
	uint8_t *ring = (uint8_t *)f->pool + emu_switch_offset(&f->layout, cpu);
	const uint64_t head = cpu_at(f, cpu)->switch_head;

	for (size_t i = 0; i < r->size; i++)
		ring[(head + i) & (RING - 1)] = r->bytes[i];
	cpu_at(f, cpu)->switch_head = head + r->size;
}

/* Copy the switches of CPU 1. Return: the time of the first one; they follow each other. */
static uint64_t copy_switches(struct fixture *f, uint64_t since_ns, size_t *ret_n, bool *ret_cut)
{
	struct record record;
	uint64_t first = 0;
	struct cursor c;
	uint8_t *bytes;
	size_t size;

	assert_int_equal(
	    f->source->ops->copy_switches(f->source, 1, since_ns, &bytes, &size, ret_cut), 0);
	c = cursor_from(bytes, size);
	for (*ret_n = 0; record_next(&c, &record) == 0; ++*ret_n) {
		assert_int_equal(record.header.type, PERF_RECORD_SWITCH_CPU_WIDE);
		first = first ? first : record.trailer.time;
		assert_int_equal(record.trailer.time, first + *ret_n);
	}
	assert_int_equal(cursor_left(&c), 0);
	free(bytes);
	return first;
}

/* Of a ring that went around, whole records are copied, and none that may be overwritten meanwhile,
 * or is older than the bookmark that was asked for. */
static void switches(void **state)
{
	struct fixture *f = *state;
	struct records r = {};
	const size_t one = (records_switch(&r, 7, false, 1, 1), r.size);
	const size_t n_fit = RING / one;
	size_t n;
	uint64_t time = 1;
	bool is_cut;

	for (; time <= 10; time++) {
		r.size = 0;
		records_switch(&r, 7, time % 2, time, 1);
		write_switches(f, 1, &r);
	}
	assert_int_equal(f->source->ops->hold(f->source, &f->moment), 0);
	assert_int_equal(copy_switches(f, 0, &n, &is_cut), 1);
	assert_int_equal(n, 10);
	assert_false(is_cut);

	clock_ns = 500;
	assert_true(source_emu_share(f->source, false) >= 0);
	clock_ns = 0;
	for (; time <= 3 * n_fit; time++) {
		r.size = 0;
		records_switch(&r, 7, time % 2, time, 1);
		write_switches(f, 1, &r);
		if (time == 20) {
			assert_int_equal(f->source->ops->hold(f->source, &f->moment), 0);
			assert_int_equal(copy_switches(f, 500, &n, &is_cut), 11);
			assert_int_equal(n, 10);
			assert_true(is_cut);
		}
	}
	assert_int_equal(f->source->ops->hold(f->source, &f->moment), 0);
	assert_int_equal(copy_switches(f, 500, &n, &is_cut), 2 * n_fit + 1);
	assert_int_equal(n, n_fit);
	assert_true(is_cut);

	/* Two more come after the hold, and one that is not published yet. */
	r.size = 0;
	records_switch(&r, 7, time % 2, time, 1);
	write_switches(f, 1, &r);
	write_switches(f, 1, &r);
	assert_int_equal(copy_switches(f, 0, &n, &is_cut), 2 * n_fit + 3);
	assert_int_equal(n, n_fit - 2);
	cpu_at(f, 1)->owner = 1;
	(void)copy_switches(f, 0, &n, &is_cut);
	assert_int_equal(n, n_fit - (2 * one + 256 - RING % one + one - 1) / one);
	records_deinit(&r);
}

/* Write to the event ring of CPU 1 as a program does. */
static void write_event(struct fixture *f, const struct emu_event *event)
{
	uint8_t *ring = (uint8_t *)f->pool + emu_event_offset(&f->layout, 1);
	const uint64_t head = cpu_at(f, 1)->event_head;

	memcpy(ring + (head & (f->layout.event_size - 1)), event, sizeof(*event));
	cpu_at(f, 1)->event_head = head + sizeof(*event);
}

static void write_syscalls(struct fixture *f, uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to; i++)
		write_event(f, &(struct emu_event){ .time_ns = 1000 + i,
						    .pid = 7,
						    .tid = 8,
						    .kind = EMU_EVENT_SYSCALL,
						    .number = i });
}

/* Copy the events of CPU 1, which are system calls with consecutive numbers. Return: the first. */
static uint32_t copy_syscalls(struct fixture *f, uint64_t since_ns, size_t *ret_n)
{
	struct source_event *events;
	uint32_t first;

	assert_int_equal(f->source->ops->copy_events(f->source, 1, since_ns, &events, ret_n), 0);
	first = *ret_n ? events[0].number : 0;
	for (size_t i = 0; i < *ret_n; i++) {
		assert_int_equal(events[i].kind, SOURCE_EVENT_SYSCALL);
		assert_int_equal(events[i].number, first + i);
		assert_int_equal(events[i].time, 1000 + first + i);
		assert_int_equal(events[i].pid, 7);
		assert_int_equal(events[i].tid, 8);
	}
	free(events);
	return first;
}

/* As with the switches: none that may be overwritten, or is older than what was asked for. */
static void events(void **state)
{
	struct fixture *f = *state;
	const uint32_t n_fit = (uint32_t)(f->layout.event_size / sizeof(struct emu_event));
	size_t n;

	assert_int_equal(f->layout.event_size, RING / 4);
	write_syscalls(f, 0, 10);
	assert_int_equal(f->source->ops->hold(f->source, &f->moment), 0);
	assert_int_equal(copy_syscalls(f, 0, &n), 0);
	assert_int_equal(n, 10);

	clock_ns = 500;
	assert_true(source_emu_share(f->source, false) >= 0);
	clock_ns = 0;
	write_syscalls(f, 10, 20);
	assert_int_equal(f->source->ops->hold(f->source, &f->moment), 0);
	assert_int_equal(copy_syscalls(f, 500, &n), 10);
	assert_int_equal(n, 10);

	write_syscalls(f, 20, 3 * n_fit);
	assert_int_equal(f->source->ops->hold(f->source, &f->moment), 0);
	assert_int_equal(copy_syscalls(f, 500, &n), 2 * n_fit);
	assert_int_equal(n, n_fit);

	/* Two more come after the hold, and one that is not published yet. */
	write_syscalls(f, 3 * n_fit, 3 * n_fit + 2);
	cpu_at(f, 1)->owner = 1;
	assert_int_equal(copy_syscalls(f, 0, &n), 2 * n_fit + 3);
	assert_int_equal(n, n_fit - 3);
}

/* A program can write anything there: what is no event is left out. */
static void scribbled_events(void **state)
{
	static const struct emu_event bad[] = {
		{ .kind = 0, .number = 1 },
		{ .kind = 3, .number = 1 },
		{ .kind = UINT32_MAX, .number = 1 },
		{ .kind = EMU_EVENT_SIGNAL, .number = 0 },
		{ .kind = EMU_EVENT_SIGNAL, .number = 65 },
	};
	struct fixture *f = *state;
	struct source_event *events;
	size_t n;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		write_event(f, &bad[i]);
	write_event(f,
		    &(struct emu_event){
			.pid = 7, .tid = 7, .kind = EMU_EVENT_SIGNAL, .number = 64, .handler = 5 });
	assert_int_equal(f->source->ops->hold(f->source, &f->moment), 0);
	assert_int_equal(f->source->ops->copy_events(f->source, 1, 0, &events, &n), 0);
	assert_int_equal(n, 1);
	assert_int_equal(events[0].kind, SOURCE_EVENT_SIGNAL);
	assert_int_equal(events[0].number, 64);
	assert_int_equal(events[0].handler, 5);
	free(events);

	for (uint64_t head = UINT64_MAX - 40; head != 40; head++) {
		cpu_at(f, 1)->event_head = head;
		assert_int_equal(f->source->ops->hold(f->source, &f->moment), 0);
		assert_int_equal(f->source->ops->copy_events(f->source, 1, 0, &events, &n), 0);
		assert_true(n <= 1);
		free(events);
	}
}

static void draining(void **state)
{
	struct fixture *f = *state;
	struct records r = {};
	_cleanup_(freep) uint8_t *bytes = NULL;
	size_t size;

	/* More than once around, in pieces that do not divide the ring. */
	for (unsigned i = 1; i <= 100; i++) {
		r.size = 0;
		records_comm(&r, i, "thread", i + 1);
		records_mmap2(&r, i, "/usr/lib/x86_64-linux-gnu/libc.so.6", NULL, i + 1);
		records_fork(&r, i, 1, i + 1);
		write_tasks(f, &r);
		free(bytes);
		assert_int_equal(f->source->ops->drain(f->source, SOURCE_TASKS, &bytes, &size), 0);
		f->source->ops->give_room(f->source);
		assert_int_equal(size, r.size);
		assert_memory_equal(bytes, r.bytes, r.size);
		assert_int_equal(f->pool->task_tail, f->pool->task_head);
	}
	free(bytes);
	assert_int_equal(f->source->ops->drain(f->source, SOURCE_TASKS, &bytes, &size), 0);
	f->source->ops->give_room(f->source);
	assert_int_equal(size, 0);
	records_deinit(&r);
}

/* Write records of code to the ring as a program does. */
static void write_code(struct fixture *f, uint32_t pid, uint64_t address, size_t n)
{
	uint8_t *ring = (uint8_t *)f->pool + emu_code_offset(&f->layout);
	const struct coderecord record = { .size = coderecord_size(8),
					   .kind = CODERECORD_NEW,
					   .pid = pid,
					   .address = address,
					   .n_bytes = 8 };
	uint8_t bytes[sizeof(record) + 8] = {};

	memcpy(bytes, &record, sizeof(record));
	for (; n > 0; n--)
		for (size_t i = 0; i < sizeof(bytes); i++)
			ring[f->pool->code_head++ & (f->layout.code_size - 1)] = bytes[i];
}

static size_t drain_code(struct fixture *f, uint8_t **ret_bytes)
{
	size_t size;

	assert_int_equal(f->source->ops->drain(f->source, SOURCE_CODE, ret_bytes, &size), 0);
	f->source->ops->give_room(f->source);
	assert_int_equal(f->pool->code_tail, f->pool->code_head);
	return size;
}

/* The source says whose code it is, and that something is lost where it makes no sense. */
static void drains_code(void **state)
{
	static const struct {
		uint64_t skip; /* added to the head, after two records */
		size_t n_good;
	} rows[] = { { RING * 16, 0 }, { -UINT64_C(8), 1 }, { 4, 2 } };
	struct fixture *f = *state;
	const size_t one = coderecord_size(8), n = f->layout.code_size / one / 2 + 7;
	struct coderecord record;
	uint8_t *bytes;

	for (unsigned i = 0; i < 8; i++) {
		write_code(f, 7, 0x1000 * i, n);
		f->pool->code_tail = 12345; /* not ours to believe */
		assert_int_equal(drain_code(f, &bytes), n * one);
		for (size_t k = 0; k < n; k++) {
			memcpy(&record, bytes + k * one, sizeof(record));
			assert_int_equal(record.address, 0x1000 * i);
			assert_int_equal(record.uid, 0);
		}
		free(bytes);
	}
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		write_code(f, 7, 0x1000, 2);
		f->pool->code_head += rows[i].skip;
		assert_int_equal(drain_code(f, &bytes), rows[i].n_good * one + sizeof(record));
		memcpy(&record, bytes + rows[i].n_good * one, sizeof(record));
		assert_int_equal(record.kind, CODERECORD_LOST);
		free(bytes);
	}
	assert_int_equal(drain_code(f, &bytes), 0);
	free(bytes);
}

/* Garbage counts as a record that is lost, and what comes after it is taken again. */
static void scribbled_tasks(void **state)
{
	static const struct {
		const char *name;
		size_t offset;
		uint8_t value;
		uint64_t skip; /* added to the head */
		size_t n_good;
	} rows[] = {
		{ "good", 0, PERF_RECORD_COMM, 0, 2 },
		{ "second record has no size", 56 + 6, 0, 0, 1 },
		{ "first record has no type", 0, 0, 0, 0 },
		{ "head goes back", 0, PERF_RECORD_COMM, -UINT64_C(4096), 0 },
		{ "head runs away", 0, PERF_RECORD_COMM, RING, 0 },
		{ "head in the middle of a record", 0, PERF_RECORD_COMM, -UINT64_C(8), 1 },
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const uint64_t n_lost = f->source->ops->status(f->source).n_tasks_lost;
		struct records r = {};
		struct record record;
		uint8_t *bytes;
		struct cursor c;
		size_t size;

		print_message("  %s\n", rows[i].name);
		records_comm(&r, 1, "a", 1);
		records_comm(&r, 2, "b", 2);
		assert_int_equal(r.size, 112);
		r.bytes[rows[i].offset] = rows[i].value;
		write_tasks(f, &r);
		f->pool->task_head += rows[i].skip;
		f->pool->task_tail = 12345; /* not ours to believe */

		assert_int_equal(f->source->ops->drain(f->source, SOURCE_TASKS, &bytes, &size), 0);
		f->source->ops->give_room(f->source);
		assert_int_equal(size, 56 * rows[i].n_good);
		assert_int_equal(f->source->ops->status(f->source).n_tasks_lost,
				 n_lost + (rows[i].n_good < 2));
		c = cursor_from(bytes, size);
		for (size_t k = 0; k < rows[i].n_good; k++)
			assert_int_equal(record_next(&c, &record), 0);
		free(bytes);

		r.size = 0;
		records_comm(&r, 3, "c", 3);
		assert_drained(f, &r);
		records_deinit(&r);
	}
}

/* A scribbled head is where the next records begin: also just before the count wraps around. */
static void heads_that_wrap(void **state)
{
	static const uint64_t heads[] = {
		-UINT64_C(56), -UINT64_C(100), -UINT64_C(112),    -(RING - 1),
		-RING,         -(RING + 56),   UINT64_C(1) << 63, UINT64_MAX,
	};
	struct fixture *f = *state;
	struct records r = {};
	uint8_t *bytes;
	size_t size;

	records_comm(&r, 1, "a", 1);
	records_comm(&r, 2, "b", 2);
	for (size_t i = 0; i < ARRAY_LEN(heads); i++) {
		f->pool->task_head = heads[i];
		assert_int_equal(f->source->ops->drain(f->source, SOURCE_TASKS, &bytes, &size), 0);
		f->source->ops->give_room(f->source);
		assert_int_equal(size, 0);
		free(bytes);

		assert_drained(f, &r);
	}
	records_deinit(&r);
}

/* The layout that counts is the one that was asked for. */
static void scribbled_header(void **state)
{
	struct fixture *f = *state;
	struct source_view v;
	uint8_t *bytes;
	size_t size;

	memset(f->pool, 0xff, 4096);
	memset(cpu_at(f, 0), 0xff, sizeof(struct emu_cpu));
	memset((uint8_t *)f->pool + emu_aux_offset(&f->layout, 0), 0xff, RING);
	assert_false(f->source->ops->status(f->source).is_active);
	assert_int_equal(f->source->ops->hold(f->source, &f->moment), 0);
	assert_int_equal(f->source->ops->view(f->source, 0, 0, true, &v), 0);
	assert_int_equal(v.a_size + v.b_size, RING);
	assert_int_equal(v.head, UINT64_MAX);
	assert_int_equal(f->source->ops->drain(f->source, SOURCE_TASKS, &bytes, &size), 0);
	f->source->ops->give_room(f->source);
	assert_int_equal(size, 0);
	free(bytes);
	assert_int_equal(f->source->ops->status(f->source).n_tasks_lost, 1);
}

/* Task records that were lost: what CPUs ran before cannot be decoded.
 * The last switch says who ran then. */
static void lost_tasks(void **state)
{
	struct fixture *f = *state;
	struct records r = {};
	struct record record;
	struct perfbuild *b;
	struct cursor c;
	uint8_t *bytes;
	size_t size;
	bool is_cut;

	for (uint64_t time = 10; time <= 40; time += 10)
		records_switch(&r, (uint32_t)time, false, time, 1);
	write_switches(f, 1, &r);
	r.size = 0;
	b = records_at(0, 25, 0);
	records_take(&r, b, perfbuild_lost(b, 5));
	write_tasks(f, &r);
	assert_int_equal(f->source->ops->drain(f->source, SOURCE_TASKS, &bytes, &size), 0);
	free(bytes);
	assert_int_equal(size, 0);
	assert_int_equal(f->source->ops->status(f->source).n_tasks_lost, 5);

	assert_int_equal(f->source->ops->hold(f->source, &f->moment), 0);
	assert_int_equal(f->source->ops->copy_switches(f->source, 1, 0, &bytes, &size, &is_cut), 0);
	assert_true(is_cut);
	c = cursor_from(bytes, size);
	assert_int_equal(record_next(&c, &record), 0);
	assert_int_equal(record.trailer.time, 25);
	assert_int_equal(record.trailer.tid, 20);
	assert_int_equal(record_next(&c, &record), 0);
	assert_int_equal(record.trailer.time, 30);
	assert_int_equal(record_next(&c, &record), 0);
	assert_int_equal(record_next(&c, &record), RECORD_END);
	free(bytes);
	records_deinit(&r);
}

/* The kernel says whose processes are; of an unknown one that has ended, its
 * parent counts, or the user that ptd runs as. */
static void whose_code(void **state)
{
	struct fixture *f = *state;
	struct records r = {};
	uint32_t theirs;
	uint8_t *bytes;
	uid_t user;
	size_t size;

	if (geteuid() != 0)
		skip();
	theirs = otheruser_start(1000);
	records_fork(&r, GONE, theirs, monotonic_ns());
	records_comm(&r, theirs, "theirs", monotonic_ns());
	assert_drained(f, &r);
	records_deinit(&r);
	write_code(f, theirs, 0x1000, 1);
	write_code(f, GONE, 0x1000, 1);
	write_code(f, GONE + 1, 0x1000, 1);
	size = drain_code(f, &bytes);
	assert_int_equal(size, 3 * coderecord_size(8));
	for (size_t i = 0; i < 3; i++) {
		const struct coderecord *record =
		    (struct coderecord *)(void *)(bytes + i * coderecord_size(8));

		assert_int_equal(record->uid, i < 2 ? 1000 : 0);
	}
	free(bytes);
	otheruser_stop(theirs);
	/* What was said stays. */
	assert_int_equal(f->source->ops->owner(f->source, theirs, &user), 0);
	assert_int_equal(user, 1000);
	assert_int_equal(f->source->ops->owner(f->source, GONE + 2, &user), -ESRCH);
}

/* What the plugin cannot have written is left out, and the log says so, once. */
static void nonsense(void **state)
{
	struct fixture *f = *state;
	struct records r = {};
	uint8_t *bytes;
	size_t size;

	records_comm(&r, 0, "nobody", monotonic_ns());
	write_tasks(f, &r);
	assert_int_equal(f->source->ops->drain(f->source, SOURCE_TASKS, &bytes, &size), 0);
	f->source->ops->give_room(f->source);
	assert_int_equal(size, 0);
	free(bytes);
	records_deinit(&r);
	for (unsigned i = 0; i < 2; i++) {
		logged_begin();
		f->source->ops->look_after(f->source);
		assert_int_equal(strstr(logged_end(), "records that make no sense") != NULL,
				 i == 0);
	}
}

/* Active is what says so and lives: the killed do not count themselves out. */
static void activity(void **state)
{
	struct fixture *f = *state;
	struct records r = {};
	const pid_t child = fork();
	uint8_t *bytes;
	size_t size;

	if (child == 0) {
		(void)pause();
		_exit(0);
	}
	assert_false(f->source->ops->status(f->source).is_active);
	f->pool->n_attached = 1;
	records_comm(&r, (uint32_t)child, "child", 1);
	write_tasks(f, &r);
	assert_int_equal(f->source->ops->drain(f->source, SOURCE_TASKS, &bytes, &size), 0);
	f->source->ops->give_room(f->source);
	free(bytes);
	assert_true(f->source->ops->status(f->source).is_active);
	f->pool->n_attached = 0;
	assert_false(f->source->ops->status(f->source).is_active);
	f->pool->n_attached = 1;
	assert_true(f->source->ops->status(f->source).is_active);

	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_false(f->source->ops->status(f->source).is_active);
	records_deinit(&r);
}

/* What the programs could not record is logged, once. */
static void what_ran_unrecorded(void **state)
{
	struct fixture *f = *state;

	logged_begin();
	f->source->ops->look_after(f->source);
	assert_string_equal(logged_end(), "");
	f->pool->code_lost = 3;
	logged_begin();
	f->source->ops->look_after(f->source);
	assert_non_null(strstr(logged_end(), "code that is in no file ran unrecorded"));
	f->pool->exhausted = 1;
	logged_begin();
	f->source->ops->look_after(f->source);
	assert_non_null(strstr(logged_end(), "some threads ran unrecorded"));
	f->pool->code_lost = f->pool->exhausted = 1000;
	logged_begin();
	f->source->ops->look_after(f->source);
	assert_string_equal(logged_end(), "");
}

/* A program of its own accord: from then on snapshots say that MTC and CYC packets may be there. */
static void timing(void **state)
{
	struct fixture *f = *state;
	const uint64_t before = f->source->facts.attr_config;

	assert_int_equal(f->source->ops->hold(f->source, &f->moment), 0);
	assert_int_equal(f->source->facts.attr_config, before);
	assert_true(source_emu_share(f->source, true) >= 0);
	assert_true(source_emu_share(f->source, false) >= 0);
	assert_int_equal(f->source->ops->hold(f->source, &f->moment), 0);
	assert_int_equal(f->source->facts.attr_config, before | 0xc202);
	assert_false(f->pool->header.layout.timing.mtc);
}

static void what_it_does_not_do(void **state)
{
	struct source *source = (struct source *)0x1;
	char dir[TEMPDIR_SIZE];
	struct config config;

	(void)state;
	config_init(&config);
	tempdir_make("source_emu", dir);
	config.pt.values[PTTERM_TSC] = 0;
	assert_int_equal(source_emu_new(&config, NULL, &source), -EOPNOTSUPP);
	assert_ptr_equal(source, (struct source *)0x1);

	config_init(&config);
	config.pt.values[PTTERM_NORETCOMP] = 1;
	config.pt.values[PTTERM_PSB_PERIOD] = 0;
	assert_int_equal(source_emu_new(&config, NULL, &source), 0);
	assert_int_equal(source->facts.attr_config, 1 << 0 | 1 << 10 | 1 << 11 | 1 << 13);
	(void)source->ops->free(source);
	tempdir_remove(dir);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_pool, set_up, tear_down),
		cmocka_unit_test_setup_teardown(views, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_the_writer_reached, set_up, tear_down),
		cmocka_unit_test_setup_teardown(holding, set_up, tear_down),
		cmocka_unit_test_setup_teardown(never_written, set_up, tear_down),
		cmocka_unit_test_setup_teardown(switches, set_up, tear_down),
		cmocka_unit_test_setup_teardown(bookmarks, set_up, tear_down),
		cmocka_unit_test_setup_teardown(events, set_up, tear_down),
		cmocka_unit_test_setup_teardown(scribbled_events, set_up, tear_down),
		cmocka_unit_test_setup_teardown(draining, set_up, tear_down),
		cmocka_unit_test_setup_teardown(drains_code, set_up, tear_down),
		cmocka_unit_test_setup_teardown(scribbled_tasks, set_up, tear_down),
		cmocka_unit_test_setup_teardown(heads_that_wrap, set_up, tear_down),
		cmocka_unit_test_setup_teardown(scribbled_header, set_up, tear_down),
		cmocka_unit_test_setup_teardown(lost_tasks, set_up, tear_down),
		cmocka_unit_test_setup_teardown(whose_code, set_up, tear_down),
		cmocka_unit_test_setup_teardown(nonsense, set_up, tear_down),
		cmocka_unit_test_setup_teardown(activity, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_ran_unrecorded, set_up, tear_down),
		cmocka_unit_test_setup_teardown(timing, set_up, tear_down),
		cmocka_unit_test(what_it_does_not_do),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
