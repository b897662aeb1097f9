/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Memtrace file
 *
 * One thread's drmemtrace file: writes records in the form the format asks for, and knows which
 * instructions' bytes it announced. What to write, and when it is legal, the thread decides.
 *
 * Bytes are announced anew in every chunk of MEMTRACE_CHUNK instructions, although a plain file is
 * one chunk to DynamoRIO: so a reader that takes the header's chunk size by its word finds them,
 * and the file can be cut into the components of a zip as it is.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/sink/memtrace_code.h"
#include "decoder/sink/memtrace_out.h"
#include "ptd/record.h"
#include "util/vec.h"

#define MEMTRACE_CHUNK UINT64_C(10000000)

/*
 * How times become timestamps, which are µs since 1601. Without a clock in ns they count ticks
 * since the first slice instead, from 1: 0 means no timestamp to DynamoRIO.
 */
struct memtrace_clock {
	enum ptd_clock clock;
	int64_t realtime_offset_ns;
	uint64_t t_first;
};

struct memtrace_announced;

struct memtrace_file {
	struct memtrace_out out;
	const struct memtrace_clock *clock; /* borrowed */
	uint64_t stamp;                     /* the last timestamp */
	uint64_t n_windows;                 /* so far; the next one has this number */
	uint64_t n_insns;
	uint64_t chunk_end; /* n_insns at which the chunk is full */

	struct memtrace_code *code; /* borrowed: of the thread's address space */
	uint64_t generation;        /* of @code, that the announcements are made in */
	uint32_t epoch;             /* announcements of older ones are void */
	VEC(struct memtrace_announced *) announced; /* by site, in pages */
};

/* One instruction where it ran. */
struct memtrace_insn {
	const struct ptd_block *block; /* borrowed */
	uint64_t base;
	size_t index;
};

static inline uint64_t memtrace_insn_pc(const struct memtrace_insn *insn)
{
	return insn->base + insn->block->insns[insn->index].offset;
}

static inline uint8_t memtrace_insn_class(const struct memtrace_insn *insn)
{
	return insn->block->insns[insn->index].iclass;
}

static inline bool memtrace_insn_branches(uint8_t class)
{
	switch (class) {
	case PTD_INSN_JUMP:
	case PTD_INSN_JUMP_INDIRECT:
	case PTD_INSN_JUMP_COND:
	case PTD_INSN_CALL:
	case PTD_INSN_CALL_INDIRECT:
	case PTD_INSN_RETURN:
	case PTD_INSN_RETURN_FAR:
		return true;
	default:
		return false;
	}
}

/* Is its record incomplete without knowing where it went? */
static inline bool memtrace_insn_needs_outcome(uint8_t class)
{
	return memtrace_insn_branches(class) && class != PTD_INSN_JUMP && class != PTD_INSN_CALL;
}

/* Addresses of other than 64-bit code wrap at 4 GiB. */
static inline uint64_t memtrace_insn_wrap(const struct memtrace_insn *insn, uint64_t pc)
{
	return insn->block->mode == 64 ? pc : (uint32_t)pc;
}

/* The pc behind it. */
static inline uint64_t memtrace_insn_next(const struct memtrace_insn *insn)
{
	return memtrace_insn_wrap(insn,
				  memtrace_insn_pc(insn) + insn->block->insns[insn->index].size);
}

/* Where it goes, if it is a direct branch. */
static inline uint64_t memtrace_insn_target(const struct memtrace_insn *insn)
{
	return memtrace_insn_wrap(insn, insn->base + (uint64_t)insn->block->target);
}

/*
 * Create the file and write its header, all but the first timestamp.
 *
 * Return: 0, or negative errno.
 */
_must_check_ int memtrace_file_create(struct memtrace_file *file, struct memtrace_out_pool *pool,
				      const struct memtrace_clock *clock, const char *stem,
				      uint64_t pid, uint64_t tid);

/* What runs from now on belongs to @code; nothing of it was announced. */
void memtrace_file_set_code(struct memtrace_file *file, struct memtrace_code *code);

/*
 * Write one marker; @ret_offset, if not NULL, is where its record begins.
 *
 * Return: 0, or negative errno; so the functions below.
 */
_must_check_ int memtrace_file_marker(struct memtrace_file *file, uint16_t marker, uint64_t value,
				      uint64_t *ret_offset);

/* Change the value of the marker at @offset. */
_must_check_ int memtrace_file_patch(struct memtrace_file *file, uint64_t offset, uint64_t value);

/* Timestamp and cpu, which is PTD_ID_UNKNOWN if not known. Timestamps never go backwards. */
_must_check_ int memtrace_file_pair(struct memtrace_file *file, uint64_t t, uint32_t cpu);

/*
 * Begin the next window: what follows need not continue what is before. The first one, window 0,
 * begins behind the file's first timestamp.
 */
_must_check_ int memtrace_file_window(struct memtrace_file *file);

/*
 * Which instructions of a run must come with their bytes: those from index @ret_from of the block.
 * The caller writes the run that way, or calls memtrace_file_forget().
 */
_must_check_ int memtrace_file_announce(struct memtrace_file *file, const struct ptd_run *run,
					size_t *ret_from);

/* Announce everything anew. */
void memtrace_file_forget(struct memtrace_file *file);

/*
 * Instructions @first to @end of @block, with their bytes from @from on. None is a conditional or
 * an indirect branch.
 */
_must_check_ int memtrace_file_insns(struct memtrace_file *file, const struct ptd_block *block,
				     uint64_t base, size_t first, size_t end, size_t from);

/* A conditional or an indirect branch that went to @target. */
_must_check_ int memtrace_file_branch(struct memtrace_file *file, const struct memtrace_insn *insn,
				      bool with_bytes, uint64_t target);

/* The thread's exit and the footer; the file is closed. */
_must_check_ int memtrace_file_finish(struct memtrace_file *file, uint64_t tid);

/* Drop it as it is. A zeroed one is fine. */
void memtrace_file_deinit(struct memtrace_file *file);
