/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Memtrace expansion
 *
 * What of a batch's drmemtrace records depends on nothing but the batch: its instructions, without
 * their bytes. Several threads may make expansions at the same time. The writer of a thread's file
 * (thread.h) copies them for as long as it has nothing to add, such as a timestamp, a
 * marker, or the bytes of an instruction that runs for the first time; these runs it writes itself.
 *
 * A run follows the one before it if no mark stands between them and control came to it as the code
 * says: it fell through, or followed a branch. The records of such a run are those of its own
 * instructions, but for a branch at its end whose record must say where it went; and before them
 * the record of such a branch at the end of the run before. No run follows a far return, which may
 * leave the kernel, or an instruction that may enter it. A marker of a symbol stands where it
 * changes, as if all runs were written one after the other. Other runs have no records.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "ptd/record.h"

struct output;

struct memtrace_expansion_run {
	uint32_t end; /* offset of the end of its records; that of the run before is the start */
	uint32_t site : 28; /* its number in the batch: a site is a block at an address */
	uint32_t turns : 1; /* its last instruction is a call or a return */
	uint32_t waits : 1; /* a branch, whose record is before those of the next run */
	uint32_t follows : 1;
};

struct memtrace_expansion {
	const struct memtrace_expansion_run *runs; /* as many as the batch has */
	const uint8_t *records;
	uint32_t n_sites; /* more than any number of a site */
};

/* What one thread keeps between two expansions. */
struct memtrace_memory;

/* Return: an empty memory; NULL if there is no memory. With @operands, instructions whose data have
 * records (decoder/x86/operand.h) are left to the writer. */
struct memtrace_memory *memtrace_memory_new(bool operands);
struct memtrace_memory *memtrace_memory_free(struct memtrace_memory *memory);

/* Add the expansion of @batch to @output. Return: 0, or negative errno. */
_must_check_ int memtrace_expand(struct memtrace_memory *memory, const struct ptd_batch *batch,
				 struct output *output);

/* Return: the expansion of a batch with @n_runs runs that memtrace_expand() put at @bytes. */
struct memtrace_expansion memtrace_expansion_at(const void *bytes, size_t n_runs);
