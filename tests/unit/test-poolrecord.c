/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The records of the software source, byte by byte as <linux/perf_event.h> describes them, and what
 * becomes of them when a ring is full or its lock is held.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <linux/perf_event.h>
#include <string.h>

#include "daemon/plugin/poolrecord.h"
#include "tests/lib/emupool.h"
#include "util/perf/codec.h"

/* IDENTIFIER, CPU, TIME and TID, as the kernel writes them. */
struct raw_trailer {
	uint32_t pid, tid;
	uint64_t time;
	uint32_t cpu, reserved;
	uint64_t id;
};

#define TRAILER     sizeof(struct raw_trailer)
#define SWITCH_SIZE 48

static const struct emu_pool_layout layout = {
	.n_cpus = 2,
	.n_busy_max = 2,
	.aux_size = 4096,
	.switch_size = 4096,
	.event_size = 4096,
	.task_size = 4096,
	.code_size = 65536,
	.psb_period = 4096,
};

static const struct poolrecord_who who = { .pid = 10, .tid = 11, .cpu = 1 };

static const uint8_t *task_ring(void)
{
	return attach_at(&emupool, emu_task_offset(&layout));
}

static const uint8_t *switch_ring(uint32_t cpu)
{
	return attach_at(&emupool, emu_switch_offset(&layout, cpu));
}

static void check_record(const uint8_t *bytes, uint32_t type, uint16_t misc, const void *payload,
			 size_t size, uint64_t *ret_time)
{
	const struct perf_event_header *header = (const void *)bytes;
	const struct raw_trailer *trailer = (const void *)(bytes + 8 + size);

	assert_int_equal(header->type, type);
	assert_int_equal(header->misc, misc);
	assert_int_equal(header->size, 8 + size + TRAILER);
	assert_memory_equal(bytes + 8, payload, size);
	assert_int_equal(trailer->pid, who.pid);
	assert_int_equal(trailer->tid, who.tid);
	assert_int_equal(trailer->cpu, who.cpu);
	assert_int_equal(trailer->reserved, 0);
	assert_int_equal(trailer->id, RECORD_ID_SIDEBAND);
	*ret_time = trailer->time;
}

static void comm(void **state)
{
	struct {
		uint32_t pid, tid;
		char comm[16];
	} expected = { 10, 11, "eight888" };
	uint64_t time, before = attach_now_ns();

	(void)state;
	poolrecord_comm(&emupool, who, "eight888", true);
	check_record(task_ring(), PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC, &expected, 24,
		     &time);
	assert_int_equal(emupool.pool->task_head, 8 + 24 + TRAILER);
	assert_in_range(time, before, attach_now_ns());
}

static void fork_and_exit(void **state)
{
	struct task {
		uint32_t pid, ppid, tid, ptid;
		uint64_t time;
	} expected = { 10, 10, 11, 9, 0 };
	struct {
		struct task task;
		uint32_t magic, signal;
	} killed = { .magic = RECORD_EXIT_SIGNAL, .signal = 11 };
	uint64_t first, second;

	(void)state;
	poolrecord_fork(&emupool, who, 10, 9);
	memcpy(&expected.time, task_ring() + 24, 8);
	check_record(task_ring(), PERF_RECORD_FORK, 0, &expected, 24, &first);
	assert_in_range(expected.time, 1, first);

	poolrecord_exit(&emupool, who, 1, 0);
	expected.ppid = expected.ptid = 1;
	memcpy(&expected.time, task_ring() + 64 + 24, 8);
	check_record(task_ring() + 64, PERF_RECORD_EXIT, 0, &expected, 24, &second);
	assert_true(second >= first);

	poolrecord_exit(&emupool, who, 1, 11);
	killed.task = expected;
	memcpy(&killed.task.time, task_ring() + 128 + 24, 8);
	check_record(task_ring() + 128, PERF_RECORD_EXIT, 0, &killed, 32, &second);
}

static void mmap2(void **state)
{
	struct record_mmap2 map = {
		.addr = 0x401000,
		.len = 0x2000,
		.pgoff = 0x1000,
		.maj = 8,
		.min = 1,
		.ino = 99,
		.prot = 5,
		.flags = 2,
		.name = "/bin/x",
	};
	struct {
		uint32_t pid, tid;
		uint64_t addr, len, pgoff;
		union {
			struct {
				uint32_t maj, min;
				uint64_t ino, generation;
			} file;
			struct {
				uint8_t size, reserved[3], bytes[20];
			} id;
		} of;
		uint32_t prot, flags;
		char name[8];
	} expected = { 10, 11, 0x401000, 0x2000, 0x1000, { { 8, 1, 99, 0 } }, 5, 2, "/bin/x" };
	uint64_t time;

	(void)state;
	poolrecord_mmap(&emupool, who, &map);
	check_record(task_ring(), PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER, &expected, 72, &time);

	map.build_id = (struct buildid){ .bytes = { 1, 2, 3 }, .size = 3 };
	expected.of.id.size = 3;
	memset(expected.of.id.reserved, 0, 3);
	memset(expected.of.id.bytes, 0, 20);
	memcpy(expected.of.id.bytes, "\1\2\3", 3);
	poolrecord_mmap(&emupool, who, &map);
	check_record(task_ring() + 112, PERF_RECORD_MMAP2,
		     PERF_RECORD_MISC_USER | PERF_RECORD_MISC_MMAP_BUILD_ID, &expected, 72, &time);
}

/* A record that does not fit is counted; as soon as there is room, LOST tells how many. */
static void full_ring(void **state)
{
	struct {
		uint64_t id, lost;
	} expected = { RECORD_ID_SIDEBAND, 0 };
	uint64_t time, head;
	unsigned n = 0;

	(void)state;
	while (emupool.pool->task_lost == 0 && n++ < 1000)
		poolrecord_comm(&emupool, who, "x", false);
	head = emupool.pool->task_head;
	assert_int_equal(head, 4096 / 56 * 56);
	poolrecord_comm(&emupool, who, "x", false);
	assert_int_equal(emupool.pool->task_lost, 2);

	/* Room for the record, but not for both. */
	emupool.pool->task_tail = 56;
	poolrecord_comm(&emupool, who, "x", false);
	assert_int_equal(emupool.pool->task_lost, 3);

	emupool.pool->task_tail = head;
	poolrecord_comm(&emupool, who, "x", false);
	assert_int_equal(emupool.pool->task_lost, 0);
	assert_int_equal(emupool.pool->task_head, head + 56 + 56);
	expected.lost = 3;
	/* It may cross the end of the ring. */
	{
		uint8_t bytes[56];

		for (size_t i = 0; i < sizeof(bytes); i++)
			bytes[i] = task_ring()[(head + i) % 4096];
		check_record(bytes, PERF_RECORD_LOST, 0, &expected, 16, &time);
	}
}

static void locked_ring(void **state)
{
	(void)state;
	/* A holder that lives keeps it; nobody waits for ever. */
	emupool.pool->task_lock = (uint32_t)getpid();
	poolrecord_comm(&emupool, who, "x", false);
	assert_int_equal(emupool.pool->task_head, 0);
	assert_int_equal(emupool.pool->task_lost, 1);
	/* One that is gone does not. */
	emupool.pool->task_lock = 0x7ffffffe;
	poolrecord_comm(&emupool, who, "x", false);
	assert_true(emupool.pool->task_head > 0);
	assert_int_equal(emupool.pool->task_lock, 0);
}

static struct emu_event event_at(uint32_t cpu, size_t i)
{
	struct emu_event event;

	memcpy(&event, attach_at(&emupool, emu_event_offset(&layout, cpu) + i * sizeof(event)),
	       sizeof(event));
	return event;
}

static void events(void **state)
{
	const size_t n_fit = layout.event_size / sizeof(struct emu_event);
	const uint64_t before = attach_now_ns();
	struct emu_event e;

	(void)state;
	poolrecord_syscall(&emupool, who, 231);
	poolrecord_signal(&emupool, who, 11, 0x401000);
	e = event_at(1, 0);
	assert_in_range(e.time_ns, before, attach_now_ns());
	assert_int_equal(e.pid, who.pid);
	assert_int_equal(e.tid, who.tid);
	assert_int_equal(e.kind, EMU_EVENT_SYSCALL);
	assert_int_equal(e.number, 231);
	assert_true(event_at(1, 1).time_ns >= e.time_ns);
	e = event_at(1, 1);
	assert_int_equal(e.kind, EMU_EVENT_SIGNAL);
	assert_int_equal(e.number, 11);
	assert_int_equal(e.handler, 0x401000);
	assert_int_equal(attach_cpu(&emupool, 1)->event_head, 2 * sizeof(e));
	assert_int_equal(attach_cpu(&emupool, 0)->event_head, 0);

	/* They are overwritten, the oldest first, and what is beside the ring is not. */
	for (size_t i = 2; i < n_fit + 2; i++)
		poolrecord_syscall(&emupool, who, (uint32_t)i);
	assert_int_equal(event_at(1, 0).number, n_fit);
	assert_int_equal(event_at(1, 1).number, n_fit + 1);
	assert_int_equal(event_at(1, 2).number, 2);
	assert_int_equal(attach_cpu(&emupool, 1)->event_head, (n_fit + 2) * sizeof(e));
}

/* Another process can write to the head. */
static void events_at_a_scribbled_head(void **state)
{
	static const uint64_t heads[] = { UINT64_MAX, 4095, 4096 - 31, UINT64_C(1) << 63 };
	const uint8_t zeros[64] = {};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(heads); i++) {
		attach_cpu(&emupool, 1)->event_head = heads[i];
		poolrecord_syscall(&emupool, who, 1);
		assert_int_equal(event_at(1, (heads[i] & 4095) / sizeof(struct emu_event)).number,
				 1);
		assert_memory_equal(attach_at(&emupool, emu_aux_offset(&layout, 1)), zeros,
				    sizeof(zeros));
	}
}

struct expected_switch {
	uint32_t type;
	uint16_t misc;
	uint32_t tid;   /* in the trailer */
	uint32_t other; /* in the payload */
	uint64_t time;
};

static void check_switches(uint32_t cpu, const struct expected_switch *expected, size_t n)
{
	assert_int_equal(attach_cpu(&emupool, cpu)->switch_head, n * SWITCH_SIZE);
	for (size_t i = 0; i < n; i++) {
		const uint8_t *bytes = switch_ring(cpu) + i * SWITCH_SIZE;
		const struct perf_event_header *header = (const void *)bytes;
		const struct raw_trailer *trailer = (const void *)(bytes + SWITCH_SIZE - TRAILER);
		uint32_t payload[2];

		memcpy(payload, bytes + 8, 8);
		assert_int_equal(header->type, expected[i].type);
		assert_int_equal(header->misc, expected[i].misc);
		assert_int_equal(header->size, SWITCH_SIZE);
		assert_int_equal(trailer->tid, expected[i].tid);
		assert_int_equal(payload[1], expected[i].other);
		assert_int_equal(trailer->time, expected[i].time);
		assert_int_equal(trailer->cpu, cpu);
	}
}

#define OUT PERF_RECORD_MISC_SWITCH_OUT
#define SWITCH(from, to, time)                                       \
	{ PERF_RECORD_SWITCH_CPU_WIDE, OUT, (from), (to), (time) },  \
	{                                                            \
		PERF_RECORD_SWITCH_CPU_WIDE, 0, (to), (from), (time) \
	}

static void switches(void **state)
{
	static const struct expected_switch expected[] = {
		{ PERF_RECORD_ITRACE_START, 0, 11, 11, 1000 },
		SWITCH(0, 11, 1000),
		SWITCH(11, 12, 9000),
		SWITCH(12, 0, 20000),
		SWITCH(0, 12, 90000),
		SWITCH(12, 0, 99000),
	};
	const struct poolrecord_who other = { .pid = 10, .tid = 12, .cpu = 1 };
	struct emu_cpu *cpu = attach_cpu(&emupool, 1);

	(void)state;
	poolrecord_run(&emupool, who, 1000);
	/* A short system call is not worth a record. */
	cpu->released_ns = 5000;
	poolrecord_run(&emupool, who, 6000);
	/* Another thread takes its place at once. */
	cpu->released_ns = 8000;
	poolrecord_run(&emupool, other, 9000);
	/* A long break. */
	cpu->released_ns = 20000;
	poolrecord_run(&emupool, other, 90000);
	poolrecord_idle(&emupool, 1, 99000);
	poolrecord_idle(&emupool, 1, 99999);
	check_switches(1, expected, ARRAY_LEN(expected));
	check_switches(0, NULL, 0);
}

#define TEST(f) emupool_test(f, layout)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(comm),        TEST(fork_and_exit),
		TEST(mmap2),       TEST(full_ring),
		TEST(locked_ring), TEST(switches),
		TEST(events),      TEST(events_at_a_scribbled_head),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
