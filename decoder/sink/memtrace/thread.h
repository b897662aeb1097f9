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
 *
 * If the kernel's code is written, there are no signals: marker 43 stands where the program or the
 * kernel is interrupted, with the address at which it would have gone on, and marker 44 where it
 * goes on there. They nest. Where it goes on elsewhere, in a signal handler or in a new program,
 * the far return of the kernel says so, and the marker 43 stays open until it goes on after all.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/sink/memtrace/calls.h"
#include "decoder/sink/memtrace/code.h"
#include "decoder/sink/memtrace/expansion.h"
#include "decoder/sink/memtrace/file.h"
#include "decoder/sink/memtrace/frames.h"
#include "decoder/sink/memtrace/kernel.h"
#include "decoder/sink/memtrace/mappings.h"
#include "decoder/sink/memtrace/out.h"
#include "decoder/sink/memtrace/schedule.h"
#include "decoder/sink/memtrace/symbols.h"
#include "ptd/record.h"

/*
 * The ids of threads that have none of their own: the idle thread of a CPU, and what ran on a CPU
 * when it is not known which thread that was. The number of the CPU is added. DynamoRIO takes 0 for
 * no thread, and files with the same id for the same thread. No thread of Linux has such an id.
 */
#define MEMTRACE_ID_IDLE    (UINT64_C(1) << 32)
#define MEMTRACE_ID_UNKNOWN (UINT64_C(1) << 33)

/* The page of old system calls, which the kernel executes itself when a program calls them. */
#define MEMTRACE_VSYSCALL      UINT64_C(0xffffffffff600000)
#define MEMTRACE_VSYSCALL_SIZE 0x1000u

/* What all files of a directory have in common. */
struct memtrace_directory {
	struct memtrace_out_pool pool;
	struct memtrace_clock clock;
	struct memtrace_schedule schedule;
	struct memtrace_symbols symbols;
	struct memtrace_mappings mappings;
	struct memtrace_kernel kernel;
	struct memtrace_operands *operands; /* owned; NULL: no data addresses are written */
	const struct ptd_decoder *decoder;  /* is asked for code; borrowed; or NULL */
	bool marks_calls;                   /* calls and returns have markers */
	bool whole_system;                  /* the kernel's code is written, too */
	bool by_cores; /* a file holds what ran on a core, whose threads change */
};

/* What the stream showed last of the thread. */
enum memtrace_after {
	MEMTRACE_AFTER_NOTHING, /* the thread begins, or there was a hole */
	MEMTRACE_AFTER_INSN,
	MEMTRACE_AFTER_SYSCALL, /* it left traced code by a system call */
	MEMTRACE_AFTER_ASYNC,   /* it was interrupted at async_ip */
};

#define MEMTRACE_EVENTS_MAX 24 /* open markers 43; DynamoRIO allows less than 30 */

/* An open marker 43. */
struct memtrace_event {
	uint64_t pc;     /* its value, where the interrupted code goes on */
	uint64_t marker; /* offset of it in the file, in bytes */
	bool is_unknown; /* nothing was seen before the kernel: the value has to be corrected */
};

struct memtrace_thread {
	struct memtrace_file file;
	struct memtrace_directory *directory;  /* borrowed */
	struct memtrace_kernel_thread *kernel; /* its samples; borrowed; or NULL */
	struct memtrace_frames frames;
	struct memtrace_returns returns;
	struct memtrace_call_list calls; /* to be marked behind the next branch */
	bool calls_lost;                 /* no more are marked */
	uint64_t pid;                    /* as in the file */
	uint64_t tid;
	char comm[32];
	bool started; /* the file was created */
	bool ended;   /* and is complete */

	uint64_t slice; /* id of the current slice */
	uint64_t t0;    /* start of that slice */
	uint32_t cpu;
	uint32_t space;
	bool space_changed;   /* since the last run */
	uint64_t code_serial; /* of file.code, which may have been freed since */

	enum memtrace_after after;
	struct memtrace_insn last;   /* the last instruction, unless AFTER_NOTHING */
	bool has_last;               /* since the last hole */
	struct memtrace_insn before; /* the one before it, if last is the first of its block */
	bool has_before;
	bool call_due;      /* last is a system call whose number has to be written */
	bool left;          /* the stream has shown that the thread left traced code behind last */
	uint64_t left_at;   /* when that was; else when last was executed, or before */
	bool pending;       /* last is not written yet, since where it goes is not known */
	bool pending_bytes; /* it will be written with its bytes */
	uint64_t async_ip;

	struct memtrace_event events[MEMTRACE_EVENTS_MAX]; /* the innermost is the last */
	size_t n_events;

	struct { /* an int3 or int n that is in no block that has run */
		struct ptd_block block;
		struct ptd_insn insn;
		uint8_t bytes[2];
	} interrupt;
	struct memtrace_insn trap; /* an int3 or int n that a signal came before, if has_trap */
	bool has_trap;

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
 * Make the state of the thread of @slice. @directory must outlive it. The file is named after
 * @comm, which may be NULL.
 *
 * Return: the state; NULL if there is no memory.
 */
struct memtrace_thread *memtrace_thread_new(const struct ptd_slice *slice, const char *comm,
					    struct memtrace_directory *directory);
struct memtrace_thread *memtrace_thread_free(struct memtrace_thread *thread);

/*
 * In the file of a core, the stay @slice begins, which does not continue the last one in the file:
 * forget where that thread was. What is open then, such as a signal's handler, stays open.
 *
 * Return: 0, or negative errno.
 */
_must_check_ int memtrace_thread_switch(struct memtrace_thread *thread,
					const struct ptd_slice *slice);

/*
 * A batch of @slice begins. Its code is @code, which is borrowed until this is called again.
 *
 * Return: 0, or negative errno. The functions below that return int do the same.
 */
_must_check_ int memtrace_thread_begin(struct memtrace_thread *thread,
				       const struct ptd_slice *slice, struct memtrace_code *code);
_must_check_ int memtrace_thread_mark(struct memtrace_thread *thread, const struct ptd_mark *mark);
_must_check_ int memtrace_thread_run(struct memtrace_thread *thread, const struct ptd_batch *batch,
				     const struct ptd_run *run);

/* The next instructions are not written: the file has a hole in their place. */
void memtrace_thread_skip(struct memtrace_thread *thread);

/* Return: whether the code at @pc is the kernel's; that of the vsyscall page is not. */
static inline bool memtrace_is_kernel(uint64_t pc)
{
	return pc >> 63 && pc - MEMTRACE_VSYSCALL >= MEMTRACE_VSYSCALL_SIZE;
}

/*
 * The next instructions are the kernel's, which are not written: there is no hole if the thread
 * goes on as a thread does behind a system call or an interrupt.
 */
void memtrace_thread_leave_out_kernel(struct memtrace_thread *thread);

/* The thread has ended, or the stream: end the file, if it was created, and free what only more
 * instructions would need. Nothing else may be called but the function that frees the rest. */
_must_check_ int memtrace_thread_finish(struct memtrace_thread *thread);

DEFINE_CLEANUP(struct memtrace_thread *, memtrace_thread_free);
