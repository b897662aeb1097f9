/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Tracepoints
 *
 * The tracepoints of the kernel whose samples are used. Where a sample has its numbers depends on
 * the kernel; the file has the kernel's formats of its tracepoints, as text.
 *
 *	sched:sched_switch        who runs, if a recording has no switch records: before Linux 4.3
 *	                          perf recorded it, and still does when asked
 *	signal:signal_deliver     a thread takes a signal
 *	raw_syscalls:sys_enter    a thread enters a system call
 *
 * Source: what perf record puts into the TRACING_DATA feature, and
 * <tracefs>/events/sched/sched_switch/format and its like.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "base/cursor.h"

enum tracepoint_kind {
	TRACEPOINT_SCHED_SWITCH,
	TRACEPOINT_SIGNAL_DELIVER,
	TRACEPOINT_SYS_ENTER,
	_TRACEPOINT_KINDS,
};

/* The fields of each kind that are used, in this order. */
enum {
	TRACEPOINT_PREV_PID = 0, /* of the kind sched_switch: 32-bit tids of who leaves */
	TRACEPOINT_NEXT_PID = 1, /* and who comes */

	TRACEPOINT_SIGNAL = 0,  /* of the kind signal_deliver */
	TRACEPOINT_CODE = 1,    /* not in recordings of the software source */
	TRACEPOINT_HANDLER = 2, /* 0: the default action; 1: the signal is ignored */

	TRACEPOINT_NUMBER = 0, /* of the kind sys_enter */

	TRACEPOINT_FIELDS_MAX = 3,
};

/* Where, in the raw data of a sample, the fields are. */
struct tracepoint {
	bool is_known;
	uint64_t id;                             /* attr.config of its events */
	uint32_t offsets[TRACEPOINT_FIELDS_MAX]; /* TRACEPOINT_NO_FIELD: it is not there */
};

#define TRACEPOINT_NO_FIELD UINT32_MAX

/*
 * Find the tracepoints among the formats, @data, which perf recorded. Those that are not there stay
 * as they are in @tracepoints, which are _TRACEPOINT_KINDS.
 *
 * Return: 0; -EBADMSG if not all formats can be read, or one does not state where its fields are:
 *         what was read before counts.
 */
_must_check_ int tracepoints_find(struct cursor data, struct tracepoint *tracepoints);

/* Return: the kind of the events with @id; _TRACEPOINT_KINDS if it is none of @tracepoints. */
enum tracepoint_kind tracepoints_kind(const struct tracepoint *tracepoints, uint64_t id);

/*
 * Read field @field of the raw data of a sample of @kind.
 *
 * Return: 0 and @ret_value, a number of its size; -EBADMSG if the data are too short or have no
 *         such field.
 */
_must_check_ int tracepoint_read(const struct tracepoint *tracepoint, enum tracepoint_kind kind,
				 size_t field, struct cursor raw, uint64_t *ret_value);
