/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Perfsched
 *
 * The sched_switch tracepoint in a perf.data file that is being built: its format as perf records
 * it, and its samples.
 */

#include <stddef.h>
#include <stdint.h>

#include "tests/lib/perfbuild.h"

#define PERFSCHED_ID 314

/* Where its numbers are in its raw data, which have PERFSCHED_RAW_SIZE bytes. */
#define PERFSCHED_PREV_PID 24
#define PERFSCHED_NEXT_PID 56
#define PERFSCHED_RAW_SIZE 64

/*
 * Write what perf knows of tracepoints into @ret_bytes: headers, an event of another system, and
 * sched_switch.
 *
 * Return: its size.
 */
size_t perfsched_formats(uint8_t ret_bytes[static 4096]);

/*
 * Let attr 1 be of sched_switch, and the file say what that looks like: @formats, borrowed (NULL:
 * it does not say it). In the pipe form they are a record.
 */
void perfsched_begin(struct perfbuild *b, const void *formats, size_t size);

/* A sample: the thread and CPU of perfbuild_at(), whose number for the kernel is @prev, makes room
 * for @next. */
void perfsched_sample(struct perfbuild *b, uint32_t prev, uint32_t next);
