/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Pool record
 *
 * The perf records of what runs under the emulator, written as the kernel would write them, with
 * the trailer of PERFABI_SAMPLE_TYPE. Who runs on a CPU goes to that CPU's switch ring, in which
 * each record has POOLRECORD_SWITCH_SIZE bytes, so that a reader of the overwritten ring finds the
 * oldest whole one; everything else goes to the task ring. Time does not go backwards in a ring.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "daemon/emu/attach.h"
#include "util/buildid.h"

#define POOLRECORD_SWITCH_SIZE 48
#define POOLRECORD_ID          2 /* perf event id of all records: the snapshot's dummy event */
#define POOLRECORD_NAME_MAX    4096

/* After a break this long a CPU is said to have been idle. */
#define POOLRECORD_IDLE_NS UINT64_C(50000)

/* The trailer of a record: whom it is about, and where it runs. */
struct poolrecord_who {
	uint32_t pid;
	uint32_t tid;
	uint32_t cpu;
};

struct poolrecord_map {
	uint64_t addr;
	uint64_t len;
	uint64_t pgoff;
	uint32_t maj;
	uint32_t min;
	uint64_t ino;
	uint32_t prot;
	uint32_t flags;
	struct buildid buildid; /* size 0: maj, min and ino stand in its place */
	const char *name;
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
void poolrecord_mmap(const struct attach *attach, struct poolrecord_who who,
		     const struct poolrecord_map *map);
