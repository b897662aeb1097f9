/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Cpu
 *
 * What is open on one CPU to record its hardware: the PT event with its AUX ring; an event whose
 * switch records are overwritten, so that switches cost nobody anything; an event whose task
 * records are drained. The last two go on while the first is given up to somebody else.
 *
 * The kernel allocates an event's rings on the node of its CPU.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "daemon/pt/auxpos.h"
#include "daemon/source/ring.h"
#include "record/codec.h"

struct source_view;

/* The same for all CPUs. */
struct cpu_setup {
	uint32_t pmu_type;
	uint64_t config;
	bool user, kernel;                       /* whose code is traced */
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
	uint64_t tasks_end; /* of the records that were found last */

	struct auxpos pos; /* at the last freeze */
	struct auxpos_print *print;
	bool settled;    /* gone is exact */
	uint64_t gone;   /* oldest bytes of the view that are overwritten */
	uint64_t gap_ns; /* for how long PT was off since the last freeze, at most */
};

void cpu_init(struct cpu *cpu, uint32_t number);

/* Is there PT of it? */
static inline bool cpu_has_ring(const struct cpu *cpu)
{
	return cpu->pt.ring.aux != NULL;
}

/* Everything that is open is closed, and what it recorded is lost. */
void cpu_close(struct cpu *cpu);
void cpu_close_pt(struct cpu *cpu);

/*
 * Open the events for switch and task records, if they are not open.
 *
 * Return: 0; -ENODEV if the CPU is offline; or negative errno, as perf_event_open(2) and mmap(2).
 */
_must_check_ int cpu_open_sideband(struct cpu *cpu, const struct cpu_setup *setup);

/*
 * Open the PT event and switch it on. Sets the state.
 *
 * Return: 0; -EBUSY if somebody else has PT; -ENODEV; -ENOMEM or -EPERM if there is or may be no
 *         ring of that size; or negative errno.
 */
_must_check_ int cpu_open_pt(struct cpu *cpu, const struct cpu_setup *setup);

/* Has what is open run since the last look, at least half of the time? */
bool cpu_is_alive(struct cpu *cpu);

/* Do the events for switch and task records, which are open, run? They do not come back with a CPU
 * that was offline. */
bool cpu_sideband_is_alive(struct cpu *cpu);

/* Have the kernel say where the AUX ring's writer is; it stops for a moment. */
void cpu_freeze(struct cpu *cpu);

/* The following are called between a freeze and a thaw; for different CPUs at the same time,
 * too. */

/* After all CPUs were frozen, remember what was in the ring. */
void cpu_print(struct cpu *cpu);

/* Return: what the AUX ring held at the last hold. Until cpu_settle() is called, the number of
 * overwritten bytes is an estimate from the memory, which may be too high but not too low. */
struct source_view cpu_view(const struct cpu *cpu);

/* The PT has been copied: find out exactly what was overwritten meanwhile. PT stops for a
 * moment. */
void cpu_settle(struct cpu *cpu);

/*
 * Copy the switch records, the oldest first, while more are written. @ret_cut: older ones are gone.
 *
 * Return: 0, or -ENOMEM.
 */
_must_check_ int cpu_copy_switches(struct cpu *cpu, uint8_t **ret_bytes, size_t *ret_size,
				   bool *ret_cut);

/*
 * Look how much has been written to the ring of task records.
 *
 * Return: bytes.
 */
size_t cpu_find_tasks(struct cpu *cpu);

/*
 * Take task records up to @until (on their clock) out of the ring: of those that were found last,
 * whole ones that are of known types are appended to @bytes, which has room for all of them.
 *
 * Return: their size.
 */
size_t cpu_take_tasks(struct cpu *cpu, uint64_t until, uint8_t *bytes);
