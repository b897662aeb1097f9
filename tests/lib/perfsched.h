/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The tracepoints of a perf.data file
 *
 * Builds the formats of those that are used, and samples, for perfbuild.h, as perf record writes
 * them.
 */

#include <stddef.h>
#include <stdint.h>

#include "tests/lib/perfbuild.h"

#define PERFSCHED_ID         314 /* of sched_switch */
#define PERFSCHED_SIGNAL_ID  200
#define PERFSCHED_SYSCALL_ID 401

/* Where the fields of sched_switch are in its raw data, which have PERFSCHED_RAW_SIZE bytes. */
#define PERFSCHED_PREV_PID 24
#define PERFSCHED_NEXT_PID 56
#define PERFSCHED_RAW_SIZE 64

/*
 * Write the formats of tracepoints into @ret_bytes: headers, an event of another system,
 * signal_deliver, sys_enter, and at last sched_switch.
 *
 * Return: their size.
 */
size_t perfsched_formats(uint8_t ret_bytes[static 4096]);

/*
 * Make attr 1 that of sched_switch, and put its @formats, which are borrowed, into the file; NULL:
 * the file has none. In the pipe form they are a record.
 */
void perfsched_begin(struct perfbuild *b, const void *formats, size_t size);

/*
 * Add a sample: on the CPU of perfbuild_at(), its thread, which the kernel calls @prev, makes room
 * for thread @next.
 */
void perfsched_sample(struct perfbuild *b, uint32_t prev, uint32_t next);

/*
 * Add a sample of signal_deliver, where attr 1 is made that of it by perfsched_make(): on the CPU
 * of perfbuild_at(), its thread takes @signal, which @handler handles.
 */
void perfsched_signal(struct perfbuild *b, int32_t signal, int32_t code, uint64_t handler);

/* The same of sys_enter: the thread enters system call @number. */
void perfsched_syscall(struct perfbuild *b, uint64_t number);

/* Make attr 1 that of the tracepoint @id, behind perfsched_begin(). */
void perfsched_make(struct perfbuild *b, uint64_t id);
