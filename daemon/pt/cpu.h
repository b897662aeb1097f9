/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * CPU
 *
 * The perf events by which the hardware of one CPU is recorded, and their rings. One event writes
 * PT to its AUX ring. The second writes who ran when, as switch records, which it overwrites, so
 * that they cost the daemon nothing. The third writes task records, which the daemon drains. The
 * last two go on while PT is given up to another program.
 *
 * The kernel allocates the rings of an event on the node of its CPU. The event loop calls these
 * functions, except those under "while the rings are held".
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/base.h"
#include "daemon/pt/auxpos.h"
#include "daemon/source/ring.h"
#include "util/perf/codec.h"

struct keepable;
struct source_view;

/* The same for all CPUs. */
struct cpu_setup {
	uint32_t pmu_type;
	uint64_t config;
	bool user, kernel; /* whose code is traced */
	/* Only what this process's children execute, and theirs, is recorded; 0: all tasks. */
	pid_t parent;
	size_t aux_size, switch_size, task_size; /* powers of two, whole pages */
};

enum cpu_state {
	CPU_CLOSED,
	CPU_RECORDING,
	CPU_OFFLINE, /* what was recorded until then is still there */
	CPU_BUSY,    /* somebody else has PT there */
	CPU_FAILED,  /* see error */
};

struct cpu_event {
	int fd;
	uint64_t id; /* which no other event has had since the machine was booted */
	struct ring ring;
	uint64_t time_enabled, time_running; /* when it was last looked */
};

/* Who ran when PT was switched on: the kernel writes it once. */
struct cpu_start {
	bool seen;
	struct record_ids who;
	struct trailer trailer;
};

struct cpu {
	uint32_t number;
	enum cpu_state state; /* of PT */
	int error;            /* why it failed, negative errno */
	struct cpu_event pt, switches, tasks;
	struct cpu_start start;
	uint64_t tasks_end;  /* of the task records that cpu_tasks_size() saw last */
	uint64_t tasks_tail; /* of those that were taken */
	bool tasks_full;     /* the ring, since room was given last; and it was said */

	struct auxpos pos; /* at the last hold */
	struct auxpos_fingerprint *fingerprint;
	bool is_exact;        /* the next number is known */
	uint64_t overwritten; /* bytes at the start of the view */
	uint64_t gap_ns;      /* PT was off for at most so long since the last hold */
	bool is_inherited;    /* each task that is recorded has an event of its own */
};

void cpu_init(struct cpu *cpu, uint32_t number);

/* Return: whether there is PT of the CPU. */
static inline bool cpu_has_ring(const struct cpu *cpu)
{
	return cpu->pt.ring.aux != NULL;
}

/* Close everything, or PT alone. What was recorded is lost. */
void cpu_close(struct cpu *cpu);
void cpu_close_pt(struct cpu *cpu);

/*
 * Open the events for switch and task records if they are not open.
 *
 * Return: 0; -ENODEV if the CPU is offline; or negative errno, as perf_event_open(2) and mmap(2).
 */
_must_check_ int cpu_open_sideband(struct cpu *cpu, const struct cpu_setup *setup);

/*
 * Open the PT event anew, switch it on, and set the state of the CPU.
 *
 * Return: 0; -EBUSY if another program has PT; -ENODEV if the CPU is offline; -ENOMEM or -EPERM if
 *         there is no ring of that size, or it may not be locked; or negative errno.
 */
_must_check_ int cpu_open_pt(struct cpu *cpu, const struct cpu_setup *setup);

/*
 * Go on with the events for switch and task records that another process opened, which become the
 * CPU's, and with what their rings hold.
 *
 * Return: 0; or negative errno, and the events are closed.
 */
_must_check_ int cpu_adopt_sideband(struct cpu *cpu, const struct keepable *switches,
				    const struct keepable *tasks);

/*
 * Take the task records from the running count @tail of the event @event_id on, which other
 * processes have left.
 *
 * Return: false if it is another event, or records are missing.
 */
_must_check_ bool cpu_resume_tasks(struct cpu *cpu, uint64_t event_id, uint64_t tail);

/*
 * The same for PT: go on with the event of another process, and set the state of the CPU. PT that
 * was left stopped is started.
 *
 * Return: 0; or negative errno, and the event is closed.
 */
_must_check_ int cpu_adopt_pt(struct cpu *cpu, const struct keepable *pt);

/* Return: whether what is open has run for at least half of the time since the last call. */
bool cpu_is_alive(struct cpu *cpu);

/* Return: whether the events for switch and task records, which are open, still run. They do not
 * come back with a CPU that was offline. */
bool cpu_sideband_is_alive(struct cpu *cpu);

/*
 * Look how much has been written to the ring of task records.
 *
 * Return: bytes.
 */
size_t cpu_tasks_size(struct cpu *cpu);

/*
 * Was the ring of task records so full, since room was given last, that the kernel may have refused
 * one? It counts those in the ring itself, but only with the next record that fits, which may come
 * much later. To be asked whenever records are taken, and once more before room is given.
 *
 * Return: whether it was; true once for each time that room was given.
 */
bool cpu_may_have_missed(struct cpu *cpu);

/* Let the kernel use the room of the task records that were taken. */
void cpu_give_room(struct cpu *cpu);

/*
 * Take records out of the ring of task records: whole ones of known types that cpu_tasks_size() has
 * seen and whose time is not later than @until (ns on the records' clock). They are appended to
 * @bytes, which has room for all that cpu_tasks_size() returned. Their room in the ring is not used
 * again before cpu_give_room().
 *
 * Return: their size in bytes.
 */
size_t cpu_drain_tasks(struct cpu *cpu, uint64_t until, uint8_t *bytes);

/* --- while the rings are held, by a snapshot's threads, each for other CPUs --- */

/* Have the kernel publish the head of the AUX ring. PT stops for a moment. */
void cpu_publish_head(struct cpu *cpu);

/* After the heads of all CPUs were published: take samples of the ring. */
void cpu_take_fingerprint(struct cpu *cpu);

/* Return: what the AUX ring held when its head was published. The number of overwritten bytes is an
 * estimate before cpu_find_overwritten(), and exact after it. */
struct source_view cpu_view(const struct cpu *cpu);

/* The PT has been copied: find out exactly what was overwritten meanwhile. PT stops for a
 * moment. */
void cpu_find_overwritten(struct cpu *cpu);

/*
 * Copy the switch records, the oldest first, while more are written.
 *
 * @ret_bytes: whole records, which the caller frees
 * @ret_cut: older ones are gone
 *
 * Return: 0, or -ENOMEM.
 */
_must_check_ int cpu_copy_switches(struct cpu *cpu, uint8_t **ret_bytes, size_t *ret_size,
				   bool *ret_cut);
