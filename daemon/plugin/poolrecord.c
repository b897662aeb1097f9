/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "daemon/plugin/poolrecord.h"

#include <string.h>
#include <unistd.h>

#include "util/perf/codec.h"

/* Longest time to wait for a stopped holder of the task lock. */
#define LOCK_PATIENCE_NS UINT64_C(100000000)

struct written {
	size_t size;
	uint8_t bytes[RECORD_OWN_MAX];
};

static struct trailer trailer_of(struct poolrecord_who who, uint64_t time)
{
	return (struct trailer){
		.pid = who.pid,
		.tid = who.tid,
		.time = time,
		.cpu = who.cpu,
		.id = RECORD_ID_SIDEBAND,
	};
}

/* @head is stored last: a reader sees a record only when the head is published. */
static void put_record(const struct attach *attach, uint64_t ring_offset, uint64_t ring_size,
		       _Atomic uint64_t *head, const struct written *record)
{
	const uint64_t from = atomic_load_explicit(head, memory_order_relaxed);

	attach_put(attach, ring_offset, ring_size, from, record->bytes, record->size);
	atomic_store_explicit(head, from + record->size, memory_order_release);
}

/* --- who runs on a CPU ------------------------------------------------------------------------ */

static void put_cpu(const struct attach *attach, uint32_t cpu, const struct written *record)
{
	put_record(attach, emu_switch_offset(&attach->layout, cpu), attach->layout.switch_size,
		   &attach_cpu(attach, cpu)->switch_head, record);
}

static void put_switch_half(const struct attach *attach, struct poolrecord_who who,
			    struct poolrecord_who other, bool out, uint64_t time)
{
	const struct record_switch sw = { .out = out, .other = { other.pid, other.tid } };
	const struct trailer trailer = trailer_of(who, time);
	struct written record;

	record.size =
	    record_write_switch_cpu_wide(&sw, &trailer, record.bytes, sizeof(record.bytes));
	put_cpu(attach, who.cpu, &record);
}

static void put_switch(const struct attach *attach, struct poolrecord_who next, uint64_t time)
{
	struct emu_cpu *cpu = attach_cpu(attach, next.cpu);
	const struct poolrecord_who prev = { cpu->current_pid, cpu->current_tid, next.cpu };

	put_switch_half(attach, prev, next, true, time);
	put_switch_half(attach, next, prev, false, time);
	cpu->current_pid = next.pid;
	cpu->current_tid = next.tid;
}

static void put_itrace_start(const struct attach *attach, struct poolrecord_who who, uint64_t time)
{
	const struct trailer trailer = trailer_of(who, time);
	struct written record;

	record.size = record_write_itrace_start(&(struct record_ids){ who.pid, who.tid }, &trailer,
						record.bytes, sizeof(record.bytes));
	put_cpu(attach, who.cpu, &record);
}

void poolrecord_run(const struct attach *attach, struct poolrecord_who who, uint64_t now_ns)
{
	const struct emu_cpu *cpu = attach_cpu(attach, who.cpu);
	const struct poolrecord_who idle = { .cpu = who.cpu };

	if (atomic_load_explicit(&cpu->switch_head, memory_order_relaxed) == 0)
		put_itrace_start(attach, who, now_ns);
	/* Records of a short system call would have no information and take much room. */
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

/* --- events ----------------------------------------------------------------------------------- */

static void put_event(const struct attach *attach, uint32_t cpu, const struct emu_event *event)
{
	uint8_t *ring = attach_at(attach, emu_event_offset(&attach->layout, cpu));
	_Atomic uint64_t *head = &attach_cpu(attach, cpu)->event_head;
	const uint64_t from = atomic_load_explicit(head, memory_order_relaxed);

	/* Other processes can write to the head: whatever it is, this stays in the ring. */
	memcpy(ring + (from & (attach->layout.event_size - sizeof(*event))), event, sizeof(*event));
	atomic_store_explicit(head, from + sizeof(*event), memory_order_release);
}

void poolrecord_syscall(const struct attach *attach, struct poolrecord_who who, uint32_t number)
{
	put_event(attach, who.cpu,
		  &(struct emu_event){ .time_ns = attach_now_ns(),
				       .pid = who.pid,
				       .tid = who.tid,
				       .kind = EMU_EVENT_SYSCALL,
				       .number = number });
}

void poolrecord_signal(const struct attach *attach, struct poolrecord_who who, uint32_t signal,
		       uint64_t handler)
{
	put_event(attach, who.cpu,
		  &(struct emu_event){ .time_ns = attach_now_ns(),
				       .pid = who.pid,
				       .tid = who.tid,
				       .kind = EMU_EVENT_SIGNAL,
				       .number = signal,
				       .handler = handler });
}

/* --- tasks ------------------------------------------------------------------------------------ */

/* Makes room for the trailer, which is written with the lock held. */
static const struct trailer no_trailer;

static bool task_room(const struct attach *attach, size_t size)
{
	const uint64_t head = atomic_load_explicit(&attach->pool->task_head, memory_order_relaxed);
	const uint64_t tail = atomic_load_explicit(&attach->pool->task_tail, memory_order_acquire);
	const uint64_t used = head - tail;

	return used <= attach->layout.task_size && attach->layout.task_size - used >= size;
}

/* The trailer is written with the lock held, so that times in the ring do not decrease. */
static void put_task_locked(const struct attach *attach, struct written *record,
			    struct poolrecord_who who)
{
	struct emu_pool *pool = attach->pool;
	const uint64_t ring = emu_task_offset(&attach->layout);
	const uint64_t n_lost = atomic_load(&pool->task_lost);
	const struct trailer trailer = trailer_of(who, attach_now_ns());
	struct written lost;

	trailer_write(&trailer, record->bytes + record->size - TRAILER_SIZE);
	if (n_lost > 0) {
		lost.size = record_write_lost(&(struct record_lost){ RECORD_ID_SIDEBAND, n_lost },
					      &trailer, lost.bytes, sizeof(lost.bytes));
		if (!task_room(attach, lost.size + record->size)) {
			atomic_fetch_add(&pool->task_lost, 1);
			return;
		}
		put_record(attach, ring, attach->layout.task_size, &pool->task_head, &lost);
		atomic_fetch_sub(&pool->task_lost, n_lost);
	} else if (!task_room(attach, record->size)) {
		atomic_fetch_add(&pool->task_lost, 1);
		return;
	}
	put_record(attach, ring, attach->layout.task_size, &pool->task_head, record);
}

static void put_task(const struct attach *attach, struct written *record, struct poolrecord_who who)
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
	struct written record;

	record.size = record_write_comm(
	    &(struct record_comm){ .exec = exec, .pid = who.pid, .tid = who.tid, .comm = comm },
	    &no_trailer, record.bytes, sizeof(record.bytes));
	put_task(attach, &record, who);
}

static struct record_task task_of(struct poolrecord_who who, uint32_t parent_pid,
				  uint32_t parent_tid)
{
	return (struct record_task){
		.pid = who.pid,
		.ppid = parent_pid,
		.tid = who.tid,
		.ptid = parent_tid,
		.time = attach_now_ns(),
	};
}

void poolrecord_fork(const struct attach *attach, struct poolrecord_who who, uint32_t parent_pid,
		     uint32_t parent_tid)
{
	const struct record_task task = task_of(who, parent_pid, parent_tid);
	struct written record;

	record.size = record_write_fork(&task, &no_trailer, record.bytes, sizeof(record.bytes));
	put_task(attach, &record, who);
}

void poolrecord_exit(const struct attach *attach, struct poolrecord_who who, uint32_t parent_pid,
		     uint32_t signal)
{
	struct record_task task = task_of(who, parent_pid, parent_pid);
	struct written record;

	task.signal = signal;
	record.size = record_write_exit(&task, &no_trailer, record.bytes, sizeof(record.bytes));
	put_task(attach, &record, who);
}

void poolrecord_mmap(const struct attach *attach, struct poolrecord_who who,
		     const struct record_mmap2 *mmap2)
{
	struct record_mmap2 whole = *mmap2;
	struct written record;

	whole.misc = PERF_RECORD_MISC_USER;
	whole.pid = who.pid;
	whole.tid = who.tid;
	record.size = record_write_mmap2(&whole, &no_trailer, record.bytes, sizeof(record.bytes));
	put_task(attach, &record, who);
}
