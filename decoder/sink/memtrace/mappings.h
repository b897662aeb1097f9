/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Memtrace mappings
 *
 * The file aux/mappings.tsv of a drmemtrace directory: where the processes had mapped the files
 * whose code they executed. There is a line for each process and file, and one more whenever the
 * process executes code of the file that is mapped elsewhere. The first line names the columns,
 * which are separated by tabs.
 *
 *	pid         of the process
 *	object      path of the file, as it was mapped, or [vdso]
 *	build_id    of that file, in hex, or -
 *	base        address at run time = address as linked + base, in hex
 *	valid_from  when code of this mapping was first executed, as a timestamp of the trace
 */

#include <stdint.h>

#include "base/base.h"
#include "decoder/sink/memtrace/file.h"
#include "decoder/sink/output.h"
#include "ptd/sink.h"
#include "util/map.h"

struct memtrace_mappings {
	int dir_fd;                         /* of the output (util/outdir.h); borrowed */
	const struct memtrace_clock *clock; /* borrowed */
	struct ptd_sink_config config;      /* has the limit of bytes */
	struct ptd_output output;           /* of the file; has none until there is a mapping */
	struct map bases;                   /* pid << 32 | id of the object → base */

	/* What was asked for last. */
	uint64_t last_key, last_base;
	bool has_last;
};

/* Make a table without lines. @config and @clock must outlive it. */
void memtrace_mappings_init(struct memtrace_mappings *mappings,
			    const struct ptd_sink_config *config,
			    const struct memtrace_clock *clock);

/* Close the file, whose last lines are lost unless memtrace_mappings_finish() was called. */
void memtrace_mappings_deinit(struct memtrace_mappings *mappings);

/*
 * Process @pid, as the traces have it, executed @run: add the mapping of its code, if it has no
 * line yet.
 *
 * Return: 0, or negative errno. The function below does the same.
 */
_must_check_ int memtrace_mappings_add(struct memtrace_mappings *mappings, uint64_t pid,
				       const struct ptd_run *run);

/* Write what was not written yet, and close the file. */
_must_check_ int memtrace_mappings_finish(struct memtrace_mappings *mappings);
