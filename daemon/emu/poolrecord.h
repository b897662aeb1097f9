/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Pool record
 *
 * The perf records of what runs under the emulator, written as the kernel would write them, with
 * the trailer of PERFABI_SAMPLE_TYPE. Who runs on a CPU goes to that CPU's switch ring, in which
 * each record has RECORD_SWITCH_SIZE bytes, so that a reader of the overwritten ring finds the
 * oldest whole one; everything else goes to the task ring. Time does not go backwards in a ring.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "daemon/emu/attach.h"

/* After a break this long a CPU is said to have been idle. */
#define POOLRECORD_IDLE_NS UINT64_C(50000)

struct record_mmap2;

/* The trailer of a record: whom it is about, and where it runs. */
struct poolrecord_who {
	uint32_t pid;
	uint32_t tid;
	uint32_t cpu;
};

/*
 * CPU records. The caller owns the CPU. poolrecord_run() says that @who runs on it from @now_ns;
 * poolrecord_idle() that nobody does. Neither writes what the ring already says.
 */
void poolrecord_run(const struct attach *attach, struct poolrecord_who who, uint64_t now_ns);
void poolrecord_idle(const struct attach *attach, uint32_t cpu, uint64_t now_ns);

/* Task records, from any thread. What finds no room is counted in the pool and reported later. */
void poolrecord_comm(const struct attach *attach, struct poolrecord_who who, const char *comm,
		     bool exec);
void poolrecord_fork(const struct attach *attach, struct poolrecord_who who, uint32_t parent_pid,
		     uint32_t parent_tid);
void poolrecord_exit(const struct attach *attach, struct poolrecord_who who, uint32_t parent_pid);

/* Something was mapped; @mmap2 needs no pid, tid and misc. */
void poolrecord_mmap(const struct attach *attach, struct poolrecord_who who,
		     const struct record_mmap2 *mmap2);
