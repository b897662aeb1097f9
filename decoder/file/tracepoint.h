/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Tracepoint
 *
 * The sched_switch tracepoint: what its samples say, where recordings have no switch records (perf
 * made it so before Linux 4.3, and still does when asked: perf record -e sched:sched_switch). Where
 * the numbers are in a sample is up to the kernel that made it; its formats of tracepoints are in
 * the file, as text.
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
	/* Of 32 bits, where in the raw data of a sample: who leaves, and who comes. */
	uint32_t prev_pid, next_pid;
};

/*
 * Find sched_switch in @data, the formats that perf recorded.
 *
 * Return: 0; -ENOENT if it is not among them; -EBADMSG if they cannot be read up to there, or its
 *         own does not say where the numbers are.
 */
_must_check_ int tracepoint_find(struct cursor data, struct tracepoint *ret_tracepoint);

/*
 * Read the @raw data of a sample of the tracepoint's.
 *
 * Return: 0 and the ids, -EBADMSG if the data are too short.
 */
_must_check_ int tracepoint_read(const struct tracepoint *tracepoint, struct cursor raw,
				 uint32_t *ret_prev, struct cursor *ret_next);
