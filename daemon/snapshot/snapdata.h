/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Snapdata
 *
 * The file "data" of a snapshot: the PT of each CPU, who ran there, and what the records tell of
 * those who did. It is written in the order in which the daemon can spare it: first the rings,
 * which are being overwritten; then the records, which are gathered when the rings have been
 * copied.
 */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/base.h"
#include "daemon/snapshot/cpucopy.h"
#include "daemon/snapshot/snapshot.h"
#include "daemon/source/source.h"
#include "util/map.h"

struct perffile;
struct perffile_object;

struct snapdata {
	const struct snapshot_request *request; /* borrowed */
	int dir_fd;                             /* borrowed */
	struct map only;                        /* whose PT is asked for, if not everybody's */
	struct map ran;                         /* which of these ran */

	/* Once the rings are written. Facts and clock are as they were then. */
	struct source_moment moment; /* at which the rings were held */
	struct source_facts facts;
	struct ptclock_log *clock; /* NULL: all clocks are the records' */
	struct perffile *file;
	struct cpucopy *cpus; /* request->source->n_cpus of them */
	struct map pids; /* who ran, of those asked for; and their parents, from the records on */
	uint64_t bytes_pt;
	uint64_t bytes_dropped;     /* while they were copied */
	uint64_t bytes_overwritten; /* then, or before, of what was wanted */
	uint64_t complete_since;    /* all PT since then is here; 0: nothing was overwritten */
	uint32_t n_cpus;            /* that have any */

	/* Once the records are written. */
	struct snapshot_known known;    /* what it points to is borrowed */
	uint64_t time_first, time_last; /* of all records; 0: there is none */
};

/* The file will be in @dir_fd, which like @request is borrowed until snapdata_deinit(); that is
 * called in any case. Return: 0 or -ENOMEM. */
_must_check_ int snapdata_init(struct snapdata *data, const struct snapshot_request *request,
			       int dir_fd);
void snapdata_deinit(struct snapdata *data);

/*
 * Hold the rings of the source, copy them, release them, make the file, and write their PT.
 *
 * Return: 0; -ESRCH if the process of the scope did not run; -ECANCELED; or negative errno.
 */
_must_check_ int snapdata_write_rings(struct snapdata *data);

/* Gather what is known by now, and write the records of those who ran, of their parents, and of who
 * ran when. Return: 0, or negative errno. */
_must_check_ int snapdata_write_records(struct snapdata *data);

/* Print "tsc monotonic_ns realtime_ns" of moments that cover what was written, if there is a
 * clock. */
void snapdata_print_clock(const struct snapdata *data, FILE *f);

/* Nothing more is written. @objects: those of the snapshot that have a build-id. Return: 0, or
 * negative errno. */
_must_check_ int snapdata_finish(struct snapdata *data, const struct perffile_object *objects,
				 size_t n_objects);
