/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Trial
 *
 * Decodes an input that may be damaged, and checks what must hold for any input: the judge finds no
 * fault (tests/lib/follow.h), the account of bytes adds up, and calls nest (tests/lib/callcheck.h).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/base.h"
#include "ptd/decode.h"
#include "util/vec.h"

/* When an instruction ran, and when the next one of the slice; if there is none, when the last mark
 * was behind it; UINT64_MAX: nothing is behind it. */
struct trial_time {
	uint64_t t, next;
};

/* What one thread executed, in its order. */
struct trial_thread {
	uint32_t pid, tid;
	VEC(uint64_t) ips;
	VEC(struct trial_time) times; /* as many */
};

/* Which lists of instructions are kept. */
enum trial_lists {
	TRIAL_NONE,
	TRIAL_THREADS,
	TRIAL_KERNEL_OF_CPUS, /* kernel code is that of thread 0.(CPU + 1), as it is logged */
};

struct trial {
	char *refusal; /* why the input could not be opened; NULL: it was decoded */
	uint64_t n_insns;
	uint64_t n_gaps;
	uint64_t n_faults;
	VEC(struct trial_thread) threads; /* unless TRIAL_NONE */
};

/*
 * Decode with @options. Each fault is written as a line to @faults.
 *
 * Return: 0, also if the input is refused; or negative errno.
 */
_must_check_ int trial_run(const struct ptd_options *options, enum trial_lists lists, FILE *faults,
			   struct trial *ret_trial);
void trial_deinit(struct trial *trial);

/* Return: the thread; NULL if it executed nothing. */
const struct trial_thread *trial_find(const struct trial *trial, uint32_t pid, uint32_t tid);
