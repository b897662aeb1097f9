/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Memtrace thread
 *
 * Turns the runs and marks of one thread into its drmemtrace file. It sees where each run begins
 * and tells apart what the format does: a branch's outcome, an interrupt (nothing is written), a
 * signal, the return from its handler, a new program, a hole. What it cannot explain becomes a new
 * window, which permits any gap; an illegal discontinuity is never written.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/sink/memtrace_code.h"
#include "decoder/sink/memtrace_file.h"
#include "decoder/sink/memtrace_frames.h"
#include "decoder/sink/memtrace_out.h"
#include "ptd/record.h"

/* What was last seen of the thread. */
enum memtrace_after {
	MEMTRACE_AFTER_NOTHING, /* its start, or a hole */
	MEMTRACE_AFTER_INSN,
	MEMTRACE_AFTER_SYSCALL, /* it left by a system call */
	MEMTRACE_AFTER_ASYNC,   /* it was interrupted at async_ip */
};

struct memtrace_thread {
	struct memtrace_file file;
	struct memtrace_out_pool *pool;     /* borrowed */
	const struct memtrace_clock *clock; /* borrowed */
	struct memtrace_frames frames;
	uint64_t pid; /* as the file has them: all ones if unknown, or idle */
	uint64_t tid;
	char comm[32];
	bool started; /* the file is there */

	uint64_t slice;
	uint64_t t0; /* its start */
	uint32_t cpu;
	uint32_t space;
	bool space_changed;   /* since the last run */
	uint64_t code_serial; /* of file.code, which may have been freed since */

	enum memtrace_after after;
	struct memtrace_insn last;   /* the last instruction, unless AFTER_NOTHING */
	struct memtrace_insn before; /* the one before it, if last is the first of its block */
	bool has_before;
	bool pending; /* last is not written yet: where it goes is not known */
	bool pending_bytes;
	uint64_t async_ip;

	bool xfer_due;        /* marker 1 is, as soon as there is an instruction where it leads */
	uint64_t xfer_pc;     /* its value */
	size_t xfer_n_frames; /* on the stack before it */

	bool gap;           /* a new window is due */
	bool after_branch;  /* what was written last is a branch: no timestamp may follow */
	bool pair_due;      /* a timestamp is, as soon as it may be written */
	uint64_t now;       /* time of what is being written */
	uint64_t paired_at; /* time of the last pair */
	uint64_t pair_age;  /* at which it is too old */
};

/*
 * Make one for the thread of @slice. @pool and @clock must outlive it.
 *
 * Return: NULL if there is no memory.
 */
struct memtrace_thread *memtrace_thread_new(const struct ptd_slice *slice,
					    struct memtrace_out_pool *pool,
					    const struct memtrace_clock *clock);
struct memtrace_thread *memtrace_thread_free(struct memtrace_thread *thread);

/*
 * A batch of @slice begins; its code is @code, borrowed until the next call.
 *
 * Return: 0, or negative errno; so the functions below.
 */
_must_check_ int memtrace_thread_begin(struct memtrace_thread *thread,
				       const struct ptd_slice *slice, struct memtrace_code *code);
_must_check_ int memtrace_thread_mark(struct memtrace_thread *thread, const struct ptd_mark *mark);
_must_check_ int memtrace_thread_run(struct memtrace_thread *thread, const struct ptd_run *run);

/* Instructions follow that are not to be written: a hole. */
void memtrace_thread_skip(struct memtrace_thread *thread);

/* The stream is over: end the file, if there is one. */
_must_check_ int memtrace_thread_finish(struct memtrace_thread *thread);

/* For memtrace_flow: write timestamp and cpu of what comes next. */
_must_check_ int memtrace_thread_pair(struct memtrace_thread *thread);

/* For memtrace_flow: what must stand before a record: the file's start, and a window that is
 * due. */
_must_check_ int memtrace_thread_ready(struct memtrace_thread *thread);

DEFINE_CLEANUP(struct memtrace_thread *, memtrace_thread_free);
