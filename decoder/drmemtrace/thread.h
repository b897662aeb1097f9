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
#include "decoder/drmemtrace/calls.h"
#include "decoder/drmemtrace/code.h"
#include "decoder/drmemtrace/expansion.h"
#include "decoder/drmemtrace/file.h"
#include "decoder/drmemtrace/kernel.h"
#include "decoder/drmemtrace/out.h"
#include "decoder/drmemtrace/schedule.h"
#include "decoder/drmemtrace/tables.h"
#include "ptd/record.h"
#include "util/vec.h"

/*
 * A reader of a drmemtrace file keeps a stack: marker 0 (a signal) pushes the interrupted pc,
 * marker 1 (the handler returns) pops that pc, and the next instruction must be at it. The writer
 * keeps the same stack here, so that it knows when marker 1 is legal. A handler that is left by
 * siglongjmp stays on this stack, as it stays on the reader's.
 *
 * A signal at the end of a system call interrupts at the pc behind the call, or at the call itself
 * if the call is to be restarted. Only the return of the handler shows which of the two it was. A
 * frame therefore remembers where its marker is, so that the value can be changed. When a second
 * handler follows the first one with no instruction between them, the markers of both hold that pc:
 * the frame of the first handler then stays, closed, below the frame of the second.
 *
 * DynamoRIO's checker also keeps a stack of return addresses: a call pushes one, a return pops one,
 * whatever program and kernel do with the stack meanwhile, and a signal pushes 0. The return
 * address in a marker of a function must be the top one.
 */

#define MEMTRACE_FRAMES_MAX  64
#define MEMTRACE_RETURNS_MAX (1u << 16)

struct memtrace_frame {
	uint64_t pc;        /* the interrupted pc, as marker 0 has it */
	uint64_t restarted; /* the other pc that is possible; equal to @pc if there is none */
	uint64_t marker;    /* offset of marker 0 in the file, in bytes */
	bool closed;        /* the reader has popped it */
};

struct memtrace_frames {
	VEC(struct memtrace_frame) stack; /* the last one is open */
	bool cut; /* the reader's stack has older frames that were forgotten here */
};

/* The newest addresses of the checker's stack. */
struct memtrace_returns {
	VEC(uint64_t) addresses;
	bool is_cut; /* the checker's stack has older addresses that were forgotten here */
};

/* Return: 0 or -ENOMEM. */
_must_check_ int memtrace_returns_push(struct memtrace_returns *returns, uint64_t address);
void memtrace_returns_pop(struct memtrace_returns *returns);

/*
 * Return: whether it is known which address the checker demands, which is @ret_address then; any
 *         would do if its stack is empty.
 */
bool memtrace_returns_top(const struct memtrace_returns *returns, uint64_t *ret_address);

void memtrace_frames_deinit(struct memtrace_frames *frames);

/*
 * Push a copy of @frame, which is open. If there are MEMTRACE_FRAMES_MAX frames, the oldest is
 * forgotten.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int memtrace_frames_push(struct memtrace_frames *frames,
				      const struct memtrace_frame *frame);

/*
 * Return: the frame that marker 1 would pop, borrowed; NULL if there is none or it was forgotten.
 */
struct memtrace_frame *memtrace_frames_top(const struct memtrace_frames *frames);

/* Return: whether the reader's stack is empty. */
bool memtrace_frames_empty(const struct memtrace_frames *frames);

/* Return: whether a frame below the top one was interrupted at @pc. */
bool memtrace_frames_deeper(const struct memtrace_frames *frames, uint64_t pc);

/* Pop the top frame, which must exist, and the closed frames directly below it. */
void memtrace_frames_pop(struct memtrace_frames *frames);

/* Undo all pops since the stack had @n frames. Nothing may have been pushed since. */
void memtrace_frames_restore(struct memtrace_frames *frames, size_t n);

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
	struct memtrace_tables tables;
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

/* The thread has ended, or the stream: end the file, if it was created, and free what only more
 * instructions would need. Nothing else may be called but the function that frees the rest. */
_must_check_ int memtrace_thread_finish(struct memtrace_thread *thread);

DEFINE_CLEANUP(struct memtrace_thread *, memtrace_thread_free);
