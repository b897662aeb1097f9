/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Memtrace kernel
 *
 * What a recording says of threads and the kernel, beside the PT: which system call a thread
 * entered, and which signal it took (samples of raw_syscalls:sys_enter and signal:signal_deliver).
 * The instruction that a sample belongs to has to be found by its thread and its time, since PT
 * shows only that there was a system call, and a signal by nothing but where the thread went on.
 *
 * Samples may be missing: a ring was overwritten, or perf lost some. None is then taken for
 * another.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "ptd/sideband.h"
#include "util/map.h"
#include "util/vec.h"

/* How many samples are kept, at 24 bytes each. */
#define MEMTRACE_SAMPLES_MAX (UINT64_C(4) << 20)

/* The number of a system call without a sample. */
#define MEMTRACE_NO_NUMBER UINT64_MAX

struct memtrace_sample {
	uint64_t t;       /* on the stream's clock */
	uint64_t number;  /* of the system call or the signal */
	uint64_t handler; /* of a signal */
};

/* Samples of one kind, in the order of time, and how many of them are behind the thread. */
struct memtrace_samples {
	VEC(struct memtrace_sample) items;
	size_t n_past;
};

/* Of one thread. */
struct memtrace_kernel_thread {
	struct memtrace_samples syscalls, signals;
};

struct memtrace_kernel {
	struct map by_thread; /* pid << 32 | tid → index */
	VEC(struct memtrace_kernel_thread *) threads;
	uint64_t n_samples;
	uint64_t n_left_out; /* samples beyond MEMTRACE_SAMPLES_MAX */
	bool has_syscalls;   /* there is a sample of a system call */
};

void memtrace_kernel_deinit(struct memtrace_kernel *kernel);

/* Take a record of the sideband, which may be of any kind. They come in the order of time.
 * Return: 0 or -ENOMEM. */
_must_check_ int memtrace_kernel_take(struct memtrace_kernel *kernel,
				      const struct ptd_sideband *record);

/* Return: the samples of a thread, borrowed; NULL if there are none. */
struct memtrace_kernel_thread *memtrace_kernel_thread(const struct memtrace_kernel *kernel,
						      uint32_t pid, uint32_t tid);

/*
 * Find the sample of the system call that @thread, which may be NULL, made between @since and
 * @until. Older samples are forgotten, and so is that one.
 *
 * Return: its number; MEMTRACE_NO_NUMBER if there is no sample. @ret_t is its time, else @since.
 */
uint64_t memtrace_kernel_syscall(struct memtrace_kernel_thread *thread, uint64_t since,
				 uint64_t until, uint64_t *ret_t);

/* The same of the signal whose handler at @handler was entered then. Return: its number, or 0. */
uint64_t memtrace_kernel_signal(struct memtrace_kernel_thread *thread, uint64_t since,
				uint64_t until, uint64_t handler);

/* The same, but nothing is forgotten. */
uint64_t memtrace_kernel_next_signal(struct memtrace_kernel_thread *thread, uint64_t since,
				     uint64_t until, uint64_t handler);
