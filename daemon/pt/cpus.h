/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * CPUs
 *
 * All CPUs of the machine: which of them are recorded, how large their rings are, and what happens
 * when CPUs come and go, when their events die, or when another program has their PT. The log says
 * what happened. The event loop calls these functions; a snapshot's thread calls
 * cpus_publish_heads(), and meanwhile the event loop calls none of them (daemon/pt/source_pt.c).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "daemon/pt/cpu.h"
#include "daemon/source/ptclock.h"

struct cpulist;
struct keeperlink;
struct kept_state;

struct cpus {
	struct cpu_setup setup; /* of all CPUs; the rings may become smaller than it says */
	struct cpu *items;
	uint32_t n;   /* of CPUs that are possible */
	int epoll_fd; /* is readable when there are task records */
	bool paused;
	/* Task records of CPUs that were opened anew are lost. The owner says so, and resets it. */
	bool lost;
	bool said_smaller;
	unsigned n_ticks;
	unsigned retry_at, retry_after; /* of busy and failed CPUs, in ticks */

	struct keeperlink *link; /* that has what is open kept; borrowed; NULL: nothing is kept */
	const char *form;        /* of what is kept, borrowed */
	const char *runtime_dir; /* where the collector's socket is; borrowed */
};

/* No CPU is open yet. Return: 0, or negative errno; cpus_deinit() is called in either case. */
_must_check_ int cpus_init(struct cpus *cpus);

/* Close everything; the keeper keeps what it has. */
void cpus_deinit(struct cpus *cpus);

/*
 * Set how large the rings are to be, but not larger than the memory of the machine allows for
 * @n_online CPUs. All sizes are in bytes, and powers of two.
 *
 * @task_size: of the rings of task records of all CPUs together
 */
void cpus_set_sizes(struct cpus *cpus, size_t aux_size, size_t switch_size, size_t task_size,
		    uint32_t n_online);

/* Make the rings smaller, once. Return: whether they could be. */
_must_check_ bool cpus_shrink(struct cpus *cpus);

/* Return: the memory that the rings of one CPU lock, in bytes. */
uint64_t cpus_locked_bytes(const struct cpus *cpus);

/* Go on with the events of an earlier process that the link has, with what their rings hold, and
 * with their sizes. The task records go on where @state says. What cannot be taken over is closed,
 * and if task records are missing, they count as lost. */
void cpus_take_over(struct cpus *cpus, const struct cpulist *online,
		    const struct kept_state *state);

/* State how far the task records were drained. */
void cpus_note_drained(const struct cpus *cpus, struct kept_state *state);

/* Let the kernel use the room of the task records that were drained. */
void cpus_give_room(struct cpus *cpus);

/* Open what is not open of the CPUs that are online. Each one's state says how that went. */
void cpus_open_all(struct cpus *cpus, const struct cpulist *online);
void cpus_close_all(struct cpus *cpus);

/* Do what is due once a second. */
void cpus_look_after(struct cpus *cpus, const struct cpulist *online);

/* Have the kernel publish the heads of all AUX rings, one right after the other. Return: when, with
 * @ret_complete_until, the TSC right before the first one. */
struct ptclock_sample cpus_publish_heads(struct cpus *cpus, uint64_t *ret_complete_until);

/* Give PT up, but not the records beside it; or take it again. */
void cpus_pause(struct cpus *cpus);
void cpus_resume(struct cpus *cpus, const struct cpulist *online);

/* Return: how many CPUs are in @state. */
uint32_t cpus_count(const struct cpus *cpus, enum cpu_state state);
