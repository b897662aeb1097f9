/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * BPF program
 *
 * What a perf.data's feature of BPF programs says of one: where the kernel put each of its
 * functions, and their machine code. The recorder asked the kernel for it some time after the
 * program had come.
 *
 * Source: the kernel's perf tool (struct perf_bpil), <linux/bpf.h>.
 */

#include <stdint.h>

#include "base/base.h"
#include "base/cursor.h"

enum {
	_BPFPROG_SUCCESS,

	BPFPROG_END, /* there is no more */
};

/* All bytes are the section's. */
struct bpfprog {
	uint32_t id; /* of those that are there at a time, only this one's */
	uint64_t tag;
	struct cursor addresses; /* uint64_t: of its functions */
	struct cursor sizes;     /* uint32_t: as many */
	struct cursor code; /* of all, one behind the other; at least as much as the sizes say */
};

struct bpfprog_function {
	uint64_t address;
	const uint8_t *code;
	uint32_t size;
};

/*
 * Take the next program out of @section, behind their number. One whose arrays are not there, or
 * not within it, has no functions: the kernel does not show its addresses, or code, to everybody.
 *
 * Return: 0; -EBADMSG if it goes beyond the section.
 */
_must_check_ int bpfprog_next(struct cursor *section, struct bpfprog *ret_program);

/* Take the next function out of @program, a copy of the caller's. Return: 0 or BPFPROG_END. */
_must_check_ int bpfprog_next_function(struct bpfprog *program,
				       struct bpfprog_function *ret_function);
