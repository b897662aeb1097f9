/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Scope
 *
 * What, of all that is recorded, belongs in a snapshot. Zeros: all of it.
 *
 * The PT of a CPU is one stream, of whoever ran there. So of a process it is that of the CPUs on
 * which it ran, whole; but mappings, objects and memory are its own only.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/base.h"
#include "base/cursor.h"
#include "daemon/proc/cpulist.h"
#include "util/map.h"

#define SCOPE_COMMAND_SIZE 256 /* with its NUL; longer ones are cut */

struct sideband_view;

struct scope {
	uint64_t since_ns; /* CLOCK_MONOTONIC: not what is older than the source's mark of then */
	uint32_t pid;      /* of a process, and of those that descend from it; 0: of all */
	bool some_cpus;
	struct cpulist cpus; /* of those only */

	/* For the manifest alone, as the client says it: what ran, and, if the client ran it, since
	 * when on CLOCK_MONOTONIC. "" and 0: it does not say. */
	char command[SCOPE_COMMAND_SIZE]; /* printable */
	uint32_t command_pid;
	uint64_t started_ns;
};

static inline bool scope_has_cpu(const struct scope *scope, uint32_t cpu)
{
	return !scope->some_cpus || cpulist_has(&scope->cpus, cpu);
}

/*
 * The process, those that it started, those that they started, and so on: as the records tell, and
 * of those who live @proc_fd, the folder /proc, borrowed. The records alone would not do: those of
 * a server forget the children that it forked yesterday, and whom it forked before the recorder
 * came they never named. Only who outlived his parent, and was forked before the records begin, is
 * nobody's.
 *
 * @ret_pids: the caller's, a map that has been made zero
 *
 * Return: 0, or negative errno.
 */
_must_check_ int scope_pids(const struct scope *scope, const struct sideband_view *tasks,
			    int proc_fd, struct map *ret_pids);

/* Do the switch records of a CPU, whole ones, say that one of @pids ran there? Without any nobody
 * knows who did, so it may have been they. */
bool scope_ran(const struct map *pids, struct cursor switches);

/*
 * Add to @ret_ran those of @pids that ran, as the switch records of a CPU, whole ones, tell.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int scope_add_ran(const struct map *pids, struct cursor switches, struct map *ret_ran);

/*
 * Print what the manifest says of it: nothing of all. @ran: of a process, it and its descendants as
 * far as they ran.
 */
void scope_print(const struct scope *scope, const struct map *ran, FILE *f);
