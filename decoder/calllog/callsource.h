/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Call source
 *
 * A source of batches (util/batchsource.h) whose input states calls. The logs of the threads are
 * merged: a piece of a thread's log is a slice, and slices come in the order of the times at which
 * they begin. What a log looks like is known by its kind, which embeds struct calllane as the first
 * field of what it keeps of a thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "ptd/record.h"
#include "util/batchsource.h"
#include "util/map.h"
#include "util/vec.h"

/* So many calls and marks are read of one thread before another one's turn. */
#define CALLLANE_PIECE 4096

/* What a piece of a log has: calls of one CPU, and marks between them. */
struct callpiece {
	VEC(struct ptd_stated_call) calls;
	VEC(struct ptd_mark) marks;
};

static inline bool callpiece_is_full(const struct callpiece *piece)
{
	return piece->calls.n + piece->marks.n >= CALLLANE_PIECE;
}

/* The log of one thread. */
struct calllane {
	uint32_t pid, tid; /* PTD_ID_UNKNOWN: not known */
	const char *comm;  /* which stays; NULL: not known */

	/* Where the lane stands: of what comes next. */
	bool ended;
	uint32_t cpu;
	uint64_t t; /* on the clock of the stream */
};

/* A kind of logs. */
struct calllog;

struct calllog_ops {
	/* Go to the beginning of @lane. Return: 0; or negative errno and @reterr_message. */
	int (*begin)(struct calllog *log, struct calllane *lane, char **reterr_message);

	/*
	 * Add what comes next in @lane to @piece: as long as it is of one CPU, and until the piece
	 * is full. Return: likewise.
	 */
	int (*read)(struct calllog *log, struct calllane *lane, struct callpiece *piece,
		    char **reterr_message);

	/* Return: all symbols, by id, as struct ptd_batch has them. They stay as they are. */
	const struct ptd_symbol *const *(*symbols)(const struct calllog *log, size_t *ret_n);

	void (*free)(struct calllog *log);
};

struct calllog {
	const struct calllog_ops *ops;
	VEC(struct calllane *) lanes; /* each in what the kind keeps of it; borrowed */
};

/*
 * Make a source of the logs. @log belongs to it on success. The caller sets the fields of struct
 * batchsource that the input decides about.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int callsource_new(struct calllog *log, struct batchsource **ret_source);
