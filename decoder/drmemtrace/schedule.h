/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Memtrace schedule
 *
 * Which thread ran on which CPU since when, and after how many instructions of its own: what
 * DynamoRIO needs to begin at a time, or to replay a trace as it ran. It is in two files beside the
 * traces: serial_schedule.bin.gz has all, in the order of time, and cpu_schedule.bin.zip has a
 * member for each CPU.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "util/vec.h"

struct memtrace_out_pool;

/* As the files have it. */
struct memtrace_scheduled {
	uint64_t tid;
	uint64_t stamp;
	uint64_t cpu;
	uint64_t n_insns; /* of the thread, before that */
};

/*
 * How many are remembered, in 64 MiB. Those that neither file needs, since the thread and the CPU
 * are those of the item before, are forgotten when there are too many; if too many are left, no
 * file is written.
 */
#define MEMTRACE_SCHEDULED_MAX (UINT64_C(2) << 20)

struct memtrace_schedule {
	VEC(struct memtrace_scheduled) items;
	uint64_t settled; /* no item that is still to come has an earlier stamp */
	bool is_too_long; /* nothing is remembered any more */
};

void memtrace_schedule_deinit(struct memtrace_schedule *schedule);

/* The thread's file has a timestamp and a CPU here. Return: 0 or -ENOMEM. */
_must_check_ int memtrace_schedule_add(struct memtrace_schedule *schedule, uint64_t tid,
				       uint64_t stamp, uint64_t cpu, uint64_t n_insns);

/* No item that is added from now on has an earlier stamp than @stamp. */
static inline void memtrace_schedule_settle(struct memtrace_schedule *schedule, uint64_t stamp)
{
	if (stamp > schedule->settled)
		schedule->settled = stamp;
}

/* Write the files, unless there is nothing or too much to write. Return: 0, or negative errno. */
_must_check_ int memtrace_schedule_write(struct memtrace_schedule *schedule,
					 struct memtrace_out_pool *pool);
