/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Scope
 *
 * What of all that is recorded belongs in a snapshot. A scope of zeros is all of it.
 *
 * The PT of a CPU is one stream of whatever ran there. So the PT of a process is the whole PT of
 * the CPUs on which it ran; mappings, objects and memory in the snapshot are those of the process
 * only.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/base.h"
#include "base/cursor.h"
#include "daemon/proc/cpulist.h"
#include "util/map.h"

#define SCOPE_COMMAND_SIZE 256 /* with its NUL; longer ones are cut */
#define SCOPE_TRIGGER_SIZE 256 /* likewise */
#define SCOPE_CGROUP_SIZE  1024

struct sideband_view;

struct scope {
	uint64_t since_ns; /* CLOCK_MONOTONIC: nothing older than the source's last bookmark before
			    * it; 0: all */
	uint32_t pid;      /* only this process and its descendants; 0: all */
	/* Only the processes of this control group, and their descendants (daemon/proc/cgroup.h);
	 * "": all. */
	char cgroup[SCOPE_CGROUP_SIZE];
	bool some_cpus; /* only these: */
	struct cpulist cpus;

	/* What the client says of its command, for the manifest: its words, which are printable,
	 * its pid, and, if the client started it, when, on CLOCK_MONOTONIC in ns. "" and 0: the
	 * client does not say. */
	char command[SCOPE_COMMAND_SIZE];
	uint32_t command_pid;
	uint64_t started_ns;

	/* What the client says of the condition that held, for the manifest: which, in which thread
	 * and when, on CLOCK_MONOTONIC in ns. "": there was none. */
	char trigger[SCOPE_TRIGGER_SIZE];
	uint32_t trigger_tid;
	uint64_t trigger_ns;
};

/* Return: whether only some processes are asked for. */
static inline bool scope_has_processes(const struct scope *scope)
{
	return scope->pid > 0 || scope->cgroup[0];
}

static inline bool scope_has_cpu(const struct scope *scope, uint32_t cpu)
{
	return !scope->some_cpus || cpulist_has(&scope->cpus, cpu);
}

/*
 * Find the processes of the scope and their descendants. The records name parents, and so does
 * /proc for the processes that live. The records alone would not do: those about a server forget
 * the children that it forked yesterday, and never named those that it forked before the recorder
 * was started. A process is not found if it was forked before the records begin and its parent has
 * ended.
 *
 * @proc_fd: the folder /proc; borrowed
 * @ret_pids: a map of the caller's, whose keys are pids; it has those of the control group already
 *
 * Return: 0, or negative errno.
 */
_must_check_ int scope_pids(const struct scope *scope, const struct sideband_view *tasks,
			    int proc_fd, struct map *ret_pids);

/* Return: whether the switch records of a CPU, whole ones, say that one of @pids ran there. True if
 * there are no records, because then it may have. */
bool scope_ran(const struct map *pids, struct cursor switches);

/*
 * Add to @ret_ran those of @pids that ran, as the switch records of a CPU, whole ones, say.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int scope_add_ran(const struct map *pids, struct cursor switches, struct map *ret_ran);

/*
 * Write the lines of the manifest about the scope; none if it is all.
 *
 * @ran: if the scope has processes, which of them and their descendants ran
 * @shift_ns: how far the records' clock is ahead of CLOCK_MONOTONIC
 */
void scope_write_manifest(const struct scope *scope, const struct map *ran, int64_t shift_ns,
			  FILE *f);
