/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Memtrace file
 *
 * The drmemtrace file of one thread. It writes records in the form that the format requires, and
 * remembers which instructions' bytes it has announced. What is written, and when that is legal, is
 * decided by struct memtrace_thread.
 *
 * An archive has a member for each chunk of MEMTRACE_CHUNK instructions, so that a reader can begin
 * at any of them. A chunk ends with a footer; the next begins with what the reader has to know: how
 * many records it would have seen, the time, and the CPU. These are not counted as records.
 *
 * Bytes are announced anew in every chunk, and the symbol is given anew, also in a plain file: a
 * reader that relies on the chunk size in the header finds both.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/drmemtrace/code.h"
#include "decoder/drmemtrace/insn.h"
#include "decoder/drmemtrace/out.h"
#include "decoder/x86/operand.h"
#include "ptd/record.h"
#include "util/vec.h"

/*
 * The operands in memory whose addresses are known (decoder/x86/operand.h), of instructions that
 * were looked up lately. What is remembered depends on the bytes of an instruction alone, and so
 * stays right whatever becomes of the code.
 */

#define MEMTRACE_OPERANDS   4096
#define MEMTRACE_INSN_BYTES 15

struct memtrace_operands {
	struct {
		uint8_t size; /* of the instruction; 0: nothing is remembered */
		uint8_t bytes[MEMTRACE_INSN_BYTES];
		bool has_operand;
		struct operand operand;
	} lately[MEMTRACE_OPERANDS];
};

#define MEMTRACE_CHUNK UINT64_C(10000000) /* instructions */

#define MEMTRACE_NO_SYMBOL_YET UINT64_MAX

/*
 * How a time of the stream becomes a timestamp. With a clock in ns, timestamps are µs since 1601.
 * With any other clock they count ticks since the first slice and begin at 1, because DynamoRIO
 * takes 0 for a missing timestamp.
 */
struct memtrace_clock {
	enum ptd_clock clock;
	int64_t realtime_offset_ns; /* as in struct ptd_info */
	uint64_t t_first;           /* start of the first slice */
};

/* Return: the timestamp of the time @t. */
uint64_t memtrace_stamp(const struct memtrace_clock *clock, uint64_t t);

struct memtrace_announced;

struct memtrace_file {
	struct memtrace_out out;
	const struct memtrace_clock *clock; /* borrowed */
	struct memtrace_schedule *schedule; /* borrowed; NULL: it is not written */
	struct memtrace_operands *operands; /* borrowed; NULL: no data addresses are written */
	uint64_t tid;
	uint64_t stamp;     /* the last timestamp */
	uint64_t cpu;       /* the last CPU */
	uint64_t n_windows; /* windows so far; the next window has this number */
	uint64_t n_insns;
	uint64_t n_others;    /* records that a reader counts, besides instructions */
	uint64_t chunk_start; /* n_insns when the chunk began */
	uint64_t chunk_end;   /* n_insns up to which bytes are announced in one chunk */
	uint64_t n_chunks;    /* that are full */
	uint64_t symbol;      /* of the last marker 101 in this chunk; or MEMTRACE_NO_SYMBOL_YET */

	struct memtrace_code *code; /* of the thread's address space; borrowed */
	uint64_t generation;        /* of @code, in which the announcements were made */
	uint32_t epoch;             /* announcements of older epochs are void */
	VEC(struct memtrace_announced *) announced; /* pages of sites; see PAGE_SITES */
};

/*
 * What is known to be announced, so that it is not looked up again: of the sites of the batch that
 * is written, and of sites that were looked up lately, in any file. An announcement is forgotten
 * with its epoch.
 */
struct memtrace_known {
	VEC(uint32_t) n; /* by site: how many instructions are announced; 0: not known */
	uint32_t epoch;  /* of the file */

	struct {
		const struct memtrace_file *file; /* NULL: nothing is known here */
		const struct ptd_block *block;
		uint64_t base;
		uint32_t epoch;
		uint32_t n;
	} lately[8192]; /* by a hash of block and base */
};

/*
 * Create the file and write its header without the first timestamp. @pool, @clock, @schedule and
 * @operands, which may be NULL, must outlive the file; the name begins with @stem
 * (memtrace_out_create()).
 *
 * Return: 0; or negative errno, and the caller must still call memtrace_file_deinit().
 */
_must_check_ int memtrace_file_create(struct memtrace_file *file, struct memtrace_out_pool *pool,
				      const struct memtrace_clock *clock,
				      struct memtrace_schedule *schedule,
				      struct memtrace_operands *operands, const char *stem,
				      uint64_t file_type, uint64_t pid, uint64_t tid);

/* Runs from now on belong to @code, which is borrowed. None of it counts as announced. */
void memtrace_file_set_code(struct memtrace_file *file, struct memtrace_code *code);

/*
 * Write one marker. @ret_offset, if not NULL, is the offset in the file at which its record begins.
 *
 * Return: 0, or negative errno. The functions below that return int do the same.
 */
_must_check_ int memtrace_file_marker(struct memtrace_file *file, uint16_t marker, uint64_t value,
				      uint64_t *ret_offset);

/*
 * Change the value of the marker @marker that begins at @offset, and is watched
 * (memtrace_out_watch()), to @value.
 *
 * Return: 0; -ENOENT if it is too late for that (memtrace_out_patch()); or another negative errno.
 */
_must_check_ int memtrace_file_patch(struct memtrace_file *file, uint64_t offset, uint16_t marker,
				     uint64_t value);

/*
 * Write the markers of the time @t and of the CPU @cpu, which may be PTD_ID_UNKNOWN. If @t is
 * earlier than the last timestamp, that timestamp is written again.
 */
_must_check_ int memtrace_file_pair(struct memtrace_file *file, uint64_t t, uint32_t cpu);

/*
 * Begin the next window: the instructions that follow need not continue those before. The first
 * window, number 0, begins behind the first timestamp of the file.
 */
_must_check_ int memtrace_file_window(struct memtrace_file *file);

/* Write the marker of @symbol, unless that is the last one in the chunk. */
_must_check_ int memtrace_file_symbol(struct memtrace_file *file, uint32_t symbol);

/*
 * Find out which instructions of @run must be written with their bytes: those whose index in the
 * block is @ret_from or more. The caller writes the run that way, or calls memtrace_file_forget().
 */
_must_check_ int memtrace_file_announce(struct memtrace_file *file, const struct ptd_run *run,
					size_t *ret_from);

/* For memtrace_file_is_announced(): the same, when it is not in @known yet. */
bool memtrace_file_look_up(const struct memtrace_file *file, struct memtrace_known *known,
			   uint32_t site, const struct ptd_run *run);

/* A batch with @n_sites sites begins: nothing is known of them. Return: 0 or -ENOMEM. */
_must_check_ int memtrace_file_begin_batch(const struct memtrace_file *file, size_t n_sites,
					   struct memtrace_known *known);

/*
 * Return: whether all instructions of @run are known to be announced, so that
 *         memtrace_file_announce() would change nothing unless the chunk ends. @site is the number
 *         of its site in the batch. The run before it was announced by memtrace_file_announce(), or
 *         is one for which this function said so.
 */
static inline bool memtrace_file_is_announced(const struct memtrace_file *file,
					      struct memtrace_known *known, uint32_t site,
					      const struct ptd_run *run)
{
	return (known->epoch == file->epoch &&
		known->n.items[site] >= (uint32_t)run->first + run->n) ||
	       memtrace_file_look_up(file, known, site, run);
}

/*
 * Write records that memtrace_expand() made of @n_insns instructions, @size bytes of them: at most
 * MEMTRACE_OUT_BUFFER. All these instructions must be announced, and in the same chunk; @symbol is
 * that of the last one, or of a branch behind it that is not written yet.
 */
_must_check_ int memtrace_file_records(struct memtrace_file *file, const uint8_t *records,
				       size_t size, uint64_t n_insns, uint32_t symbol);

/* Another thread comes to the core of the file. */
_must_check_ int memtrace_file_switch(struct memtrace_file *file, uint64_t pid, uint64_t tid);

/* Make all announcements void, so that all bytes are announced anew. */
void memtrace_file_forget(struct memtrace_file *file);

/*
 * Write the instructions @first to @end - 1 of @block, which ran at @base, with the markers of
 * their symbols and the addresses of their data; those from index @from on come with their bytes.
 * None of them may be a conditional or an indirect branch.
 */
_must_check_ int memtrace_file_insns(struct memtrace_file *file, const struct ptd_block *block,
				     uint64_t base, size_t first, size_t end, size_t from);

/* Write @insn, a conditional or an indirect branch that went to @target, likewise. */
_must_check_ int memtrace_file_branch(struct memtrace_file *file, const struct memtrace_insn *insn,
				      bool with_bytes, uint64_t target);

/* Free all announcements. No more instructions may be written. */
void memtrace_file_forget_all(struct memtrace_file *file);

/* Write the exit of the thread @tid and the footer, and close the file. */
_must_check_ int memtrace_file_finish(struct memtrace_file *file, uint64_t tid);

/* Close the file, without what is still in its buffer, and free what it owns. @file may be zero. */
void memtrace_file_deinit(struct memtrace_file *file);
