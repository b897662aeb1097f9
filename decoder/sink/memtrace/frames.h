/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Memtrace frames
 *
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

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "util/vec.h"

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

void memtrace_returns_deinit(struct memtrace_returns *returns);

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
