/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Trace file
 *
 * One file of a drmemtrace directory, of a thread or of a core, as runs and marks. It is read piece
 * by piece: a piece ends where the time, the CPU or the thread changes, so that the pieces of all
 * files can be put in the order of time.
 *
 * Control flow is checked: where an instruction does not follow from the one before it, and no
 * record explains it, there is a gap.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/drmemtrace/blockstore.h"
#include "decoder/drmemtrace/naming.h"
#include "decoder/drmemtrace/tracerecord.h"
#include "ptd/record.h"
#include "util/vec.h"

/* Which instruction a trace file has announced at each pc: as a place in a block. */

/* More different pcs of one file are refused: this is 1.5 GiB of table. */
#define CODEBOOK_MAX (UINT32_C(1) << 25)

struct codebook_entry {
	uint64_t pc;
	const struct ptd_block *block; /* NULL: a free slot */
	uint32_t index;                /* of the instruction in the block */
};

struct codebook {
	struct codebook_entry *slots;
	size_t n_slots; /* 0 or a power of two */
	size_t n_used;
};

struct container;

#define TRACEFILE_COMM_MAX 64

/* What comes after the last instruction, as far as that is known. */
enum tracefile_after {
	TRACEFILE_ANYTHING, /* a record, or a mark, explains whatever comes */
	TRACEFILE_NEXT,     /* what is behind the last instruction */
	TRACEFILE_TARGET,   /* what its direct branch leads to */
	TRACEFILE_EITHER,   /* one of both */
	TRACEFILE_INDIRECT, /* what marker 29 said */
};

/* The runs and marks of several pieces, of one thread on one CPU. */
struct tracefile_out {
	VEC(struct ptd_run) runs;
	VEC(struct ptd_mark) marks;
	size_t n_runs_max; /* when there are more, the file pauses */
	uint64_t n_insns, n_gaps[_PTD_GAP_REASONS];
};

/* What a process, of those in the file, has announced. */
struct tracefile_process {
	uint64_t pid;
	struct codebook book;
};

struct tracefile {
	char *path;
	struct blockstore *store; /* borrowed, like the next one */
	struct naming *naming;
	struct container *container; /* NULL: it is not open */
	uint8_t *buffer;
	size_t n_buffer, at_buffer;
	bool ended;
	bool has_footer;   /* one was read */
	bool has_switched; /* to another thread, whose stay has yet to begin */

	/* What the last records state. */
	char comm[TRACEFILE_COMM_MAX];
	uint64_t version, file_type;
	uint64_t tid, pid;
	uint64_t time_us; /* since 1601; 0: not known yet */
	uint64_t cpu;
	uint64_t pair_time; /* of a timestamp whose CPU has not come yet */
	uint64_t symbol;    /* value of marker 101 */
	uint64_t window;
	bool has_window;

	VEC(struct tracefile_process) processes;
	struct codebook *book; /* of the current process */

	uint8_t pieces[16]; /* the bytes of the next instruction */
	size_t n_pieces;
	uint64_t branch_target; /* of marker 29; 0: none */

	struct blockstore_draft draft; /* instructions that are in no block yet */

	enum tracefile_after after;
	uint64_t next, target;
	bool off_due; /* the last instruction was a system call: where it led is not known yet */
};

/* Make the file at @path, which is handed over; it is not opened. */
void tracefile_init(struct tracefile *file, char *path, struct blockstore *store,
		    struct naming *naming);
void tracefile_deinit(struct tracefile *file);

/*
 * Read up to where the first piece begins, which the fields of @file describe then.
 *
 * Return: 0; or negative errno and @reterr_message.
 */
_must_check_ int tracefile_open(struct tracefile *file, char **reterr_message);

/* Close the file, which forgets what it announced. tracefile_open() begins anew. */
void tracefile_close(struct tracefile *file);

/*
 * Append to @out what the current piece has, or as much of it as @out takes. Times are computed as
 * @epoch_us, µs since 1601, is time 0.
 *
 * Return: 0 if the piece goes on; 1 at its end: the fields of @file describe the next piece, unless
 *         file->ended; or negative errno and @reterr_message.
 */
_must_check_ int tracefile_read(struct tracefile *file, uint64_t epoch_us,
				struct tracefile_out *out, char **reterr_message);
