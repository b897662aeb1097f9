/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Memtrace thread
 *
 * Turns the runs and marks of one thread into its drmemtrace file. From the address at which each
 * run begins it derives what the format distinguishes: the outcome of a branch, an interrupt (for
 * which nothing is written), a signal, the return from its handler, a new program, a hole. A
 * transition that it cannot explain becomes a new window, after which control may be anywhere; a
 * discontinuity that the format forbids is never written.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/sink/memtrace_code.h"
#include "decoder/sink/memtrace_expansion.h"
#include "decoder/sink/memtrace_file.h"
#include "decoder/sink/memtrace_frames.h"
#include "decoder/sink/memtrace_out.h"
#include "ptd/record.h"

/* What the stream showed last of the thread. */
enum memtrace_after {
	MEMTRACE_AFTER_NOTHING, /* the thread begins, or there was a hole */
	MEMTRACE_AFTER_INSN,
	MEMTRACE_AFTER_SYSCALL, /* it left traced code by a system call */
	MEMTRACE_AFTER_ASYNC,   /* it was interrupted at async_ip */
};

struct memtrace_thread {
	struct memtrace_file file;
	struct memtrace_out_pool *pool;     /* borrowed */
	const struct memtrace_clock *clock; /* borrowed */
	struct memtrace_frames frames;
	uint64_t pid; /* as in the file: all ones if unknown or idle */
	uint64_t tid;
	char comm[32];
	bool started; /* the file was created */

	uint64_t slice; /* id of the current slice */
	uint64_t t0;    /* start of that slice */
	uint32_t cpu;
	uint32_t space;
	bool space_changed;   /* since the last run */
	uint64_t code_serial; /* of file.code, which may have been freed since */

	enum memtrace_after after;
	struct memtrace_insn last;   /* the last instruction, unless AFTER_NOTHING */
	struct memtrace_insn before; /* the one before it, if last is the first of its block */
	bool has_before;
	bool pending;       /* last is not written yet, since where it goes is not known */
	bool pending_bytes; /* it will be written with its bytes */
	uint64_t async_ip;

	bool xfer_due;    /* marker 1 is due as soon as there is an instruction where it leads */
	uint64_t xfer_pc; /* value of that marker */
	size_t xfer_n_frames; /* on the stack before that marker */

	bool gap;           /* a new window is due */
	bool after_branch;  /* the last record is a branch: no timestamp may follow it */
	bool pair_due;      /* a timestamp is due as soon as one may be written */
	uint64_t now;       /* time of what is being written */
	uint64_t paired_at; /* time of the last pair */
	uint64_t pair_age;  /* age at which that pair is too old; in units of the stream's clock */
};

/*
 * Make the state of the thread of @slice. @pool and @clock must outlive it.
 *
 * Return: the state; NULL if there is no memory.
 */
struct memtrace_thread *memtrace_thread_new(const struct ptd_slice *slice,
					    struct memtrace_out_pool *pool,
					    const struct memtrace_clock *clock);
struct memtrace_thread *memtrace_thread_free(struct memtrace_thread *thread);

/*
 * A batch of @slice begins. Its code is @code, which is borrowed until this is called again.
 *
 * Return: 0, or negative errno. The functions below that return int do the same.
 */
_must_check_ int memtrace_thread_begin(struct memtrace_thread *thread,
				       const struct ptd_slice *slice, struct memtrace_code *code);
_must_check_ int memtrace_thread_mark(struct memtrace_thread *thread, const struct ptd_mark *mark);
_must_check_ int memtrace_thread_run(struct memtrace_thread *thread, const struct ptd_run *run);

/*
 * Write runs of @batch, from run @i on, by copying their records from @expansion: those that follow
 * the run before, for as long as nothing else has to be written. @known is of this batch and of
 * thread->file. @ret_n is their number, which may be 0.
 */
_must_check_ int memtrace_thread_copy(struct memtrace_thread *thread, const struct ptd_batch *batch,
				      const struct memtrace_expansion *expansion,
				      struct memtrace_known *known, size_t i, size_t *ret_n);

/* The next instructions are not written: the file has a hole in their place. */
void memtrace_thread_skip(struct memtrace_thread *thread);

/* The stream is over: end the file, if it was created. */
_must_check_ int memtrace_thread_finish(struct memtrace_thread *thread);

DEFINE_CLEANUP(struct memtrace_thread *, memtrace_thread_free);
