/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * BPF program
 *
 * What the feature BPF_PROG_INFO of a perf.data file states of a BPF program: the address of each
 * of its functions, and their machine code. The recorder asked the kernel for them some time after
 * the program was loaded.
 *
 * Source: the kernel's perf tool (struct perf_bpil), <linux/bpf.h>.
 */

#include <stdint.h>

#include "base/base.h"
#include "base/cursor.h"

enum {
	_BPFPROG_SUCCESS,

	BPFPROG_END, /* there are no more functions */
};

/* The cursors point into the feature's section. */
struct bpfprog {
	uint32_t id; /* no two programs have the same id at one time */
	uint64_t tag;
	struct cursor addresses; /* of its functions, uint64_t each */
	struct cursor sizes;     /* of its functions in bytes, uint32_t each */
	struct cursor code;      /* of its functions, one after the other; not too short */
};

struct bpfprog_function {
	uint64_t address;
	const uint8_t *code;
	uint32_t size;
};

/*
 * Read the next program at @section, which then stands behind it. The program has no functions if
 * the section does not have the arrays of them: the kernel shows addresses and code to privileged
 * users only.
 *
 * Return: 0; -EBADMSG if the program does not end within the section.
 */
_must_check_ int bpfprog_next(struct cursor *section, struct bpfprog *ret_program);

/*
 * Read the next function of @program, a copy that the caller made: its cursors move on.
 *
 * Return: 0 or BPFPROG_END.
 */
_must_check_ int bpfprog_next_function(struct bpfprog *program,
				       struct bpfprog_function *ret_function);
