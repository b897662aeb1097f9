/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Memtrace symbols
 *
 * The file aux/symbols.tsv of a drmemtrace directory: a line for each symbol whose id a marker 101
 * has, in the order in which they were first executed. The first line names the columns. Columns
 * are separated by tabs; "-" stands for what there is not.
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
 */

#include <stdint.h>

#include "base/base.h"
#include "decoder/drmemtrace/file.h"
#include "decoder/sink/output.h"
#include "decoder/sink/sink.h"
#include "util/vec.h"

struct memtrace_symbols {
	int dir_fd;                         /* of the output (decoder/util/outdir.h); borrowed */
	const struct memtrace_clock *clock; /* borrowed */
	uint64_t *room;       /* bytes that may be written; NULL: no limit; borrowed */
	struct output output; /* of the file; has none until there is a symbol */
	VEC(uint64_t) known;  /* a bit for each id whose line was written */
};

/* Make a table without lines. @config and @clock must outlive it. */
void memtrace_symbols_init(struct memtrace_symbols *symbols, const struct sink_config *config,
			   const struct memtrace_clock *clock);

/* Close the file, whose last lines are lost unless memtrace_symbols_finish() was called. */
void memtrace_symbols_deinit(struct memtrace_symbols *symbols);

/*
 * Add the symbols of the instructions of @run, which is of @batch, that have no line yet.
 *
 * Return: 0, or negative errno. The function below does the same.
 */
_must_check_ int memtrace_symbols_add(struct memtrace_symbols *symbols,
				      const struct ptd_batch *batch, const struct ptd_run *run);

/* Write what was not written yet, and close the file. */
_must_check_ int memtrace_symbols_finish(struct memtrace_symbols *symbols);
