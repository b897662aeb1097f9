/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "daemon/emu/poolrecord.h"

#include <linux/perf_event.h>
#include <string.h>
#include <unistd.h>

#include "util/perfabi.h"

/* A holder of the task lock that is stopped keeps the others waiting no longer than this. */
#define LOCK_PATIENCE_NS UINT64_C(100000000)

#define RECORD_MAX (sizeof(struct perf_event_header) + 72 + POOLRECORD_NAME_MAX + 8 + TRAILER_SIZE)

#define TRAILER_SIZE sizeof(struct perfabi_trailer)

struct record {
	size_t size;
	uint8_t bytes[RECORD_MAX];
};

/* --- making one record ------------------------------------------------------------------------ */

static void add(struct record *record, const void *bytes, size_t size)
{
	memcpy(record->bytes + record->size, bytes, size);
	record->size += size;
}

static void add_u32(struct record *record, uint32_t value)
{
	add(record, &value, sizeof(value));
}

static void add_u64(struct record *record, uint64_t value)
{
	add(record, &value, sizeof(value));
}

/* NUL-terminated, and padded so that the trailer is aligned. */
static void add_string(struct record *record, const char *string)
{
	static const uint8_t zeros[8];
	const size_t n = strnlen(string, POOLRECORD_NAME_MAX - 1);

	add(record, string, n);
	add(record, zeros, 8 - n % 8);
}

static void begin(struct record *record, uint32_t type, uint16_t misc)
{
	const struct perf_event_header header = { .type = type, .misc = misc };

	record->size = 0;
	add(record, &header, sizeof(header));
}

static void end(struct record *record, struct poolrecord_who who, uint64_t time)
{
	const struct perfabi_trailer trailer = {
		.pid = who.pid,
		.tid = who.tid,
		.time = time,
		.cpu = who.cpu,
		.id = POOLRECORD_ID,
	};
	uint16_t size;

	add(record, &trailer, sizeof(trailer));
	size = (uint16_t)record->size;
	memcpy(record->bytes + offsetof(struct perf_event_header, size), &size, sizeof(size));
}

/* Tasks are only known to the reader when they are published: @head is stored last. */
static void put(uint8_t *ring, uint64_t ring_size, _Atomic uint64_t *head,
		const struct record *record)
{
	const uint64_t from = atomic_load_explicit(head, memory_order_relaxed);
	const uint64_t at = from & (ring_size - 1);
	const uint64_t room = ring_size - at;

	if (record->size <= room) {
		memcpy(ring + at, record->bytes, record->size);
	} else {
		memcpy(ring + at, record->bytes, room);
		memcpy(ring, record->bytes + room, record->size - room);
	}
	atomic_store_explicit(head, from + record->size, memory_order_release);
}

/* --- who runs on a CPU ------------------------------------------------------------------------ */

static void put_cpu(const struct attach *attach, uint32_t cpu, const struct record *record)
{
	uint8_t *ring = attach_at(attach, emu_switch_offset(&attach->layout, cpu));

	put(ring, attach->layout.switch_size, &attach_cpu(attach, cpu)->switch_head, record);
}

static void put_switch_half(const struct attach *attach, struct poolrecord_who who,
			    struct poolrecord_who other, uint16_t misc, uint64_t time)
{
	struct record record;

	begin(&record, PERF_RECORD_SWITCH_CPU_WIDE, misc);
	add_u32(&record, other.pid);
	add_u32(&record, other.tid);
	end(&record, who, time);
	put_cpu(attach, who.cpu, &record);
}

static void put_switch(const struct attach *attach, struct poolrecord_who next, uint64_t time)
{
	struct emu_cpu *cpu = attach_cpu(attach, next.cpu);
	const struct poolrecord_who prev = { cpu->current_pid, cpu->current_tid, next.cpu };

	put_switch_half(attach, prev, next, PERF_RECORD_MISC_SWITCH_OUT, time);
	put_switch_half(attach, next, prev, 0, time);
	cpu->current_pid = next.pid;
	cpu->current_tid = next.tid;
}

static void put_itrace_start(const struct attach *attach, struct poolrecord_who who, uint64_t time)
{
	struct record record;

	begin(&record, PERF_RECORD_ITRACE_START, 0);
	add_u32(&record, who.pid);
	add_u32(&record, who.tid);
	end(&record, who, time);
	put_cpu(attach, who.cpu, &record);
}

void poolrecord_run(const struct attach *attach, struct poolrecord_who who, uint64_t now_ns)
{
	const struct emu_cpu *cpu = attach_cpu(attach, who.cpu);
	const struct poolrecord_who idle = { .cpu = who.cpu };

	if (atomic_load_explicit(&cpu->switch_head, memory_order_relaxed) == 0)
		put_itrace_start(attach, who, now_ns);
	/* Records of a short system call would tell nothing and cost much. */
	if (cpu->current_tid != 0 && now_ns - cpu->released_ns > POOLRECORD_IDLE_NS)
		put_switch(attach, idle, cpu->released_ns);
	if (cpu->current_pid != who.pid || cpu->current_tid != who.tid)
		put_switch(attach, who, now_ns);
}

void poolrecord_idle(const struct attach *attach, uint32_t cpu, uint64_t now_ns)
{
	const struct poolrecord_who idle = { .cpu = cpu };

	if (attach_cpu(attach, cpu)->current_tid != 0)
		put_switch(attach, idle, now_ns);
}

/* --- tasks ------------------------------------------------------------------------------------ */

static bool task_room(const struct attach *attach, size_t size)
{
	const uint64_t head = atomic_load_explicit(&attach->pool->task_head, memory_order_relaxed);
	const uint64_t tail = atomic_load_explicit(&attach->pool->task_tail, memory_order_acquire);
	const uint64_t used = head - tail;

	return used <= attach->layout.task_size && attach->layout.task_size - used >= size;
}

static void put_task_locked(const struct attach *attach, struct record *record,
			    struct poolrecord_who who)
{
	struct emu_pool *pool = attach->pool;
	uint8_t *ring = attach_at(attach, emu_task_offset(&attach->layout));
	const uint64_t n_lost = atomic_load(&pool->task_lost);
	const uint64_t now = attach_now_ns();
	struct record lost;

	end(record, who, now);
	if (n_lost > 0) {
		begin(&lost, PERF_RECORD_LOST, 0);
		add_u64(&lost, POOLRECORD_ID);
		add_u64(&lost, n_lost);
		end(&lost, who, now);
		if (!task_room(attach, lost.size + record->size)) {
			atomic_fetch_add(&pool->task_lost, 1);
			return;
		}
		put(ring, attach->layout.task_size, &pool->task_head, &lost);
		atomic_fetch_sub(&pool->task_lost, n_lost);
	} else if (!task_room(attach, record->size)) {
		atomic_fetch_add(&pool->task_lost, 1);
		return;
	}
	put(ring, attach->layout.task_size, &pool->task_head, record);
}

static void put_task(const struct attach *attach, struct record *record, struct poolrecord_who who)
{
	struct emu_pool *pool = attach->pool;

	if (!attach_lock(&pool->task_lock, LOCK_PATIENCE_NS)) {
		atomic_fetch_add(&pool->task_lost, 1);
		return;
	}
	put_task_locked(attach, record, who);
	attach_unlock(&pool->task_lock);
}

void poolrecord_comm(const struct attach *attach, struct poolrecord_who who, const char *comm,
		     bool exec)
{
	struct record record;

	begin(&record, PERF_RECORD_COMM, exec ? PERF_RECORD_MISC_COMM_EXEC : 0);
	add_u32(&record, who.pid);
	add_u32(&record, who.tid);
	add_string(&record, comm);
	put_task(attach, &record, who);
}

/* FORK and EXIT look the same. */
static void put_life(const struct attach *attach, uint32_t type, struct poolrecord_who who,
		     uint32_t parent_pid, uint32_t parent_tid)
{
	struct record record;

	begin(&record, type, 0);
	add_u32(&record, who.pid);
	add_u32(&record, parent_pid);
	add_u32(&record, who.tid);
	add_u32(&record, parent_tid);
	add_u64(&record, attach_now_ns());
	put_task(attach, &record, who);
}

void poolrecord_fork(const struct attach *attach, struct poolrecord_who who, uint32_t parent_pid,
		     uint32_t parent_tid)
{
	put_life(attach, PERF_RECORD_FORK, who, parent_pid, parent_tid);
}

void poolrecord_exit(const struct attach *attach, struct poolrecord_who who, uint32_t parent_pid)
{
	put_life(attach, PERF_RECORD_EXIT, who, parent_pid, parent_pid);
}

void poolrecord_mmap(const struct attach *attach, struct poolrecord_who who,
		     const struct poolrecord_map *map)
{
	const bool has_id = map->buildid.size > 0;
	struct record record;

	begin(&record, PERF_RECORD_MMAP2,
	      PERF_RECORD_MISC_USER | (has_id ? PERF_RECORD_MISC_MMAP_BUILD_ID : 0));
	add_u32(&record, who.pid);
	add_u32(&record, who.tid);
	add_u64(&record, map->addr);
	add_u64(&record, map->len);
	add_u64(&record, map->pgoff);
	if (has_id) {
		add_u32(&record, map->buildid.size);
		add(&record, map->buildid.bytes, sizeof(map->buildid.bytes));
	} else {
		add_u32(&record, map->maj);
		add_u32(&record, map->min);
		add_u64(&record, map->ino);
		add_u64(&record, 0);
	}
	add_u32(&record, map->prot);
	add_u32(&record, map->flags);
	add_string(&record, map->name);
	put_task(attach, &record, who);
}
