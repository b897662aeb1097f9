/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The sched_switch tracepoint of a perf.data file
 *
 * Builds the tracepoint's format and its samples for perfbuild.h, as perf record writes them.
 */

#include <stddef.h>
#include <stdint.h>

#include "tests/lib/perfbuild.h"

#define PERFSCHED_ID 314

/* The offsets of its fields in its raw data, which have PERFSCHED_RAW_SIZE bytes. */
#define PERFSCHED_PREV_PID 24
#define PERFSCHED_NEXT_PID 56
#define PERFSCHED_RAW_SIZE 64

/*
 * Write the formats of tracepoints into @ret_bytes: headers, an event of another system, and
 * sched_switch.
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
