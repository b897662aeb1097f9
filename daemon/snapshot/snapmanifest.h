/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Snapshot manifest
 *
 * The file that says what a snapshot is: when, where and by whom it was taken, and what of all that
 * was asked for it has (ptd/snapshot.h).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct cpucopy;
struct map;
struct scope;
struct snapshot_known;
struct snapshot_request;
struct snapshot_result;
struct source_facts;
struct source_moment;

/* What it says. Everything is borrowed. */
struct snapmanifest {
	const struct snapshot_request *request;
	const struct snapshot_result *result;
	const struct snapshot_known *known;
	const struct scope *scope;
	const struct map *ran;              /* if the scope has processes: who of them ran */
	const struct source_moment *moment; /* at which the rings were held */
	const struct source_facts *facts;   /* as they were then */
	const struct cpucopy *cpus;         /* request->source->n_cpus of them */
	uint64_t bytes_dropped;             /* of PT that was overwritten while it was copied */
	uint64_t complete_since; /* all PT since then is here, in ns; 0: nothing was overwritten */
	const char *notes;       /* lines about code that is in no file */
	size_t notes_size;
};

void snapmanifest_write(const struct snapmanifest *manifest, FILE *f);
