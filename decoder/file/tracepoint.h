/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Tracepoint
 *
 * The tracepoint sched_switch, whose samples state who runs if a recording has no switch records:
 * before Linux 4.3 perf recorded it, and still does when asked (perf record -e sched:sched_switch).
 * Where the numbers are in a sample depends on the kernel; the file has the kernel's formats of its
 * tracepoints, as text.
 *
 * Source: what perf record puts into the TRACING_DATA feature, and
 * <tracefs>/events/sched/sched_switch/format.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "base/cursor.h"

struct tracepoint {
	bool is_known;
	uint64_t id; /* attr.config of its events */
	/* Where, in the raw data of a sample, the 32-bit tids are of who leaves and who comes. */
	uint32_t prev_pid, next_pid;
};

/*
 * Find sched_switch among the formats of tracepoints, @data, which perf recorded.
 *
 * Return: 0; -ENOENT if it is not there; -EBADMSG if the formats cannot be read up to there, or its
 *         format does not state where the tids are.
 */
_must_check_ int tracepoint_find(struct cursor data, struct tracepoint *ret_tracepoint);

/*
 * Read the raw data of a sample of sched_switch.
 *
 * Return: 0, @ret_prev, the tid of the thread that leaves, and @ret_next, the 4 bytes of the tid of
 *         the thread that comes; -EBADMSG if the data are too short.
 */
_must_check_ int tracepoint_read(const struct tracepoint *tracepoint, struct cursor raw,
				 uint32_t *ret_prev, struct cursor *ret_next);
