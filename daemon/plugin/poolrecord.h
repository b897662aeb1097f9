/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Pool record
 *
 * Writes the perf records of a recorded program to the pool as the kernel would write them, with
 * the trailer of PERFABI_SAMPLE_TYPE. Switch records go to the switch ring of their CPU. Each has
 * RECORD_SWITCH_SIZE bytes, so that a reader of the overwritten ring finds the oldest complete one.
 * System calls and signals, which may be many, go to the event ring of their CPU in a shorter form
 * (struct emu_event). All other records go to the task ring. In each ring, times do not decrease.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "daemon/plugin/attach.h"

/* If no thread runs on a CPU for longer than this, in ns, switch records say that it was idle. */
#define POOLRECORD_IDLE_NS UINT64_C(50000)

/* Instead of a CPU: the thread runs unrecorded. */
#define POOLRECORD_NO_CPU UINT32_MAX

struct record_mmap2;

/* The thread that a record is about, and its CPU, for the trailer of the record. */
struct poolrecord_who {
	uint32_t pid;
	uint32_t tid;
	uint32_t cpu;
};

/*
 * Write switch records of a CPU that the caller owns: poolrecord_run(), that @who runs on it from
 * @now_ns on; poolrecord_idle(), that no thread does. A record that repeats the last one is not
 * written.
 */
void poolrecord_run(const struct attach *attach, struct poolrecord_who who, uint64_t now_ns);
void poolrecord_idle(const struct attach *attach, uint32_t cpu, uint64_t now_ns);

/*
 * Write an event of @who, whose CPU the caller owns: it enters system call @number; or it takes
 * @signal, whose handler is at @handler.
 */
void poolrecord_syscall(const struct attach *attach, struct poolrecord_who who, uint32_t number);
void poolrecord_signal(const struct attach *attach, struct poolrecord_who who, uint32_t signal,
		       uint64_t handler);

/* Write task records, in any thread. Records for which there is no room are counted in the pool,
 * and a PERF_RECORD_LOST follows later. */
void poolrecord_comm(const struct attach *attach, struct poolrecord_who who, const char *comm,
		     bool exec);
void poolrecord_fork(const struct attach *attach, struct poolrecord_who who, uint32_t parent_pid,
		     uint32_t parent_tid);
/* @signal: that the thread took, and that kills its process; 0: none */
void poolrecord_exit(const struct attach *attach, struct poolrecord_who who, uint32_t parent_pid,
		     uint32_t signal);

/* Write the MMAP2 record @mmap2, with pid and tid of @who and the misc of user code. */
void poolrecord_mmap(const struct attach *attach, struct poolrecord_who who,
		     const struct record_mmap2 *mmap2);
