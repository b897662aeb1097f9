/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Judge: schedules
 *
 * The schedule files of a trace list which thread ran when on which core. They must agree with the
 * timestamps and cpus in the trace.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "util/vec.h"

/* More entries than this are refused. */
#define SCHEDULE_MAX (UINT32_C(1) << 24)

/* As the files have it. */
struct schedule_entry {
	uint64_t tid;
	uint64_t time; /* µs since 1601 */
	uint64_t cpu;
	uint64_t n_insns; /* of the thread's file before this */
};

struct schedule {
	VEC(struct schedule_entry) entries;
	size_t first; /* of those of the file that is being read */
};

void schedule_deinit(struct schedule *schedule);

/* The entries that are added from now on are of another file. */
static inline void schedule_begin_file(struct schedule *schedule)
{
	schedule->first = schedule->entries.n;
}

/*
 * A file has a timestamp and a cpu. One that is like the last one of the file is passed over.
 *
 * Return: 0; -E2BIG if there are too many; -ENOMEM.
 */
_must_check_ int schedule_add(struct schedule *schedule, struct schedule_entry entry);

/*
 * Compare with the file at @path, a list of all entries by time or, if @by_cpu, of those of each
 * cpu by time. Of entries of one thread that follow each other, all but the first may be missing.
 * The order of @schedule changes.
 *
 * Return: 0; 1 and @ret_fault, which the caller frees, what is wrong; or negative errno.
 */
_must_check_ int schedule_compare(struct schedule *schedule, const char *path, bool by_cpu,
				  char **ret_fault);
