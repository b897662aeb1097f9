/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Stream
 *
 * A small decoded stream made by hand, for the tests of sinks. It has one object with two symbols,
 * two blocks in it, one block in memory without a file, and this batch:
 *
 *	slice   0 on CPU 3: "demo", pid 10, tid 11, from 1.000000005 s
 *	runs    hot whole; hot whole; cold from its second instruction; anon
 *	marks   before run 1 an asynchronous event, before run 2 a gap, at the end the way out
 */

#include "ptd/record.h"

#define STREAM_BASE 0x555555554000u /* where the object is mapped */
#define STREAM_HOT  0x1000u         /* ELF addresses of the blocks */
#define STREAM_COLD 0x2000u
#define STREAM_JIT  0x7f0000000000u

struct stream {
	struct ptd_object objects[2];
	struct ptd_symbol symbols[3];
	const struct ptd_symbol *by_id[3];
	struct ptd_block hot;  /* push %rbp; mov %rsp, %rbp; call cold */
	struct ptd_block cold; /* nop; jz hot */
	struct ptd_block jit;  /* syscall */
	struct ptd_slice slice;
	struct ptd_run runs[4];
	struct ptd_mark marks[3];
	struct ptd_batch batch;
	struct ptd_cpu_stats cpu;
	uint64_t n_gaps[_PTD_GAP_REASONS];
	uint64_t gap_bytes[_PTD_GAP_REASONS];
	struct ptd_stats stats;
};

void stream_init(struct stream *stream);

/* The addresses of the instructions of its batch, in order; 0 ends them. */
extern const uint64_t stream_addresses[];
