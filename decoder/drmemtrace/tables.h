/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Memtrace tables
 *
 * The files aux/symbols.tsv and aux/mappings.tsv of a drmemtrace directory. The first line names
 * the columns, which are separated by tabs; "-" stands for what there is not.
 *
 * The first has a line for each symbol whose id a marker 101 has, in the order in which they were
 * first executed:
 *
 *	id          value of the marker; 0, which has no line, stands for code without a symbol
 *	name        of the function
 *	object      path of the file from which the code came, as it was mapped; or "[jit]", ...
 *	build_id    of that file, in hex
 *	address     of the first byte, in hex: of an ELF file as linked, else in memory
 *	size        bytes, 0 if it is not known
 *	kind        elf, plt (a stub of the procedure linkage table), jit, or kernel
 *	pid         of jit: the process
 *	jit_index   of code that is in a jitdump: the compiler's number for it
 *	valid_from  likewise: when the compiler noted it, as a timestamp of the trace
 *
 * The second says where the processes had mapped the files whose code they executed. There is a
 * line for each process and file, and one more whenever the process executes code of the file that
 * is mapped elsewhere:
 *
 *	pid         of the process
 *	object      path of the file, as it was mapped, or [vdso]
 *	build_id    of that file, in hex, or -
 *	base        address at run time = address as linked + base, in hex
 *	valid_from  when code of this mapping was first executed, as a timestamp of the trace
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/drmemtrace/file.h"
#include "decoder/sink/output.h"
#include "decoder/sink/sink.h"
#include "util/map.h"
#include "util/vec.h"

struct memtrace_tables {
	int dir_fd;                         /* of the output (decoder/util/outdir.h); borrowed */
	const struct memtrace_clock *clock; /* borrowed */
	uint64_t *room; /* bytes that may be written; NULL: no limit; borrowed */

	/* A file is made with its first line. */
	struct output symbols, mappings;
	VEC(uint64_t) known; /* a bit for the id of each symbol that has a line */
	struct map bases;    /* pid << 32 | id of the object → base */

	/* The mapping that was asked for last. */
	uint64_t last_key, last_base;
	bool has_last;
};

/* Make tables without lines. @config and @clock must outlive them. */
void memtrace_tables_init(struct memtrace_tables *tables, const struct sink_config *config,
			  const struct memtrace_clock *clock);

/* Close the files, whose last lines are lost unless memtrace_tables_finish() was called. */
void memtrace_tables_deinit(struct memtrace_tables *tables);

/*
 * Process @pid, as the traces have it, executed @run of @batch: add the symbols of its instructions
 * and the mapping of its code, as far as they have no lines yet.
 *
 * Return: 0, or negative errno. The function below does the same.
 */
_must_check_ int memtrace_tables_add(struct memtrace_tables *tables, const struct ptd_batch *batch,
				     const struct ptd_run *run, uint64_t pid);

/* Write what was not written yet, and close the files. */
_must_check_ int memtrace_tables_finish(struct memtrace_tables *tables);
