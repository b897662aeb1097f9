/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Record copy
 *
 * The records that a snapshot's data file has beside PT: those of the tasks that ran and of their
 * parents, who ran when on each CPU, and what else happened to those who ran.
 */

#include <stdint.h>

#include "base/base.h"

struct cpucopy;
struct map;
struct perffile;
struct sideband_view;

struct recordcopy {
	/* Borrowed. */
	struct perffile *file;
	const struct sideband_view *tasks;
	const struct cpucopy *cpus;
	uint32_t n_cpus;
	/* Who ran, of those asked for, and when last; and their parents, once they are added. */
	struct map *pids;

	uint64_t time_first, time_last; /* of all records that are noted; 0: there is none */
};

/* The process, or one that has its mappings, ran at @time. Return: 0, or -ENOMEM. */
_must_check_ int recordcopy_note_ran(struct map *pids, uint32_t pid, uint64_t time);

/* A record of @time is written. */
void recordcopy_note_time(struct recordcopy *copy, uint64_t time);

/* Write all records to the file. Return: 0, or -ENOMEM. */
_must_check_ int recordcopy_write(struct recordcopy *copy);
