/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Cpus
 *
 * All CPUs of the machine: which of them are recorded, with rings of which size, and what becomes
 * of those that come and go, whose events die, or whose PT somebody else has. It says so in the
 * log.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "daemon/pt/cpu.h"
#include "daemon/source/ptclock.h"

struct cpulist;

struct cpus {
	struct cpu_setup setup; /* of all; the rings may become smaller */
	struct cpu *items;
	uint32_t n;   /* that are possible */
	int epoll_fd; /* can be read when there are task records */
	bool paused;
	/* Task records: of CPUs that were opened anew. For the owner to tell and to reset. */
	bool lost;
	bool said_smaller;
	unsigned n_ticks;
	unsigned retry_at, retry_after; /* of busy and failed CPUs, in ticks */
};

/* Nothing is open yet. Return: 0, or negative errno; cpus_deinit() is called then, too. */
_must_check_ int cpus_init(struct cpus *cpus);
void cpus_deinit(struct cpus *cpus);

/* Set how large the rings are to be, but not larger than @n_online CPUs can have them. @task_size
 * is for all of them together. */
void cpus_set_sizes(struct cpus *cpus, size_t aux_size, size_t switch_size, size_t task_size,
		    uint32_t n_online);

/* Open what is not open of those online; whatever comes out is each one's state. */
void cpus_open_all(struct cpus *cpus, const struct cpulist *online);
void cpus_close_all(struct cpus *cpus);

/* To be called once a second. */
void cpus_look_after(struct cpus *cpus, const struct cpulist *online);

/* Freeze all rings of PT, one right after the other. Return: when that was. */
struct ptclock_sample cpus_freeze(struct cpus *cpus);

/* Give PT up, but not the records beside it; take it again. */
void cpus_pause(struct cpus *cpus);
void cpus_resume(struct cpus *cpus, const struct cpulist *online);

/* Return: how many are in @state. */
uint32_t cpus_count(const struct cpus *cpus, enum cpu_state state);
