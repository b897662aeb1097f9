/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Call log
 *
 * An input that has calls: what its kinds have in common. A log has a lane for each thread,
 * which is read forward, a piece at a time. callsource_new() makes a stream of the lanes; overlay.h
 * lays them over a stream of PT. A kind embeds struct calllog as the first field of what it keeps
 * of a log, and struct calllane as the first field of what it keeps of a thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "ptd/calls.h"
#include "util/arena.h"
#include "util/vec.h"

struct batchsource;
struct resolver;

/* How many calls and marks are read of one thread before another one's turn. */
#define CALLLANE_PIECE 4096

/* More complaints are not written, and the last one says so. */
#define CALLLOG_COMPLAINTS_MAX 8

/* What a piece of a lane has: calls of one CPU, and marks between them. */
struct callpiece {
	VEC(struct ptd_logged_call) calls;
	VEC(struct ptd_mark) marks;
};

static inline bool callpiece_is_full(const struct callpiece *piece)
{
	return piece->calls.n + piece->marks.n >= CALLLANE_PIECE;
}

static inline void callpiece_deinit(struct callpiece *piece)
{
	vec_deinit(&piece->calls);
	vec_deinit(&piece->marks);
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

	/* Free what the kind has, and @log, whose own fields calllog_free() has freed. */
	void (*free)(struct calllog *log);
};

struct calllog {
	const struct calllog_ops *ops;
	struct resolver *resolver;    /* which has the symbols of the calls; borrowed */
	VEC(struct calllane *) lanes; /* each in what the kind keeps of it; borrowed */
	enum ptd_clock clock;         /* of the calls' times */
	uint64_t n_calls;             /* of all lanes */
	struct arena texts;           /* what the log and its lanes are called by, and */
	const char *complaints[CALLLOG_COMPLAINTS_MAX]; /* what of it could not be used */
	size_t n_complaints;
};

/* Complain that at @offset of the file @path there is @fault. Return: 0 or -ENOMEM. */
_must_check_ int calllog_complain(struct calllog *log, const char *path, uint64_t offset,
				  const char *fault);

/*
 * All lanes have been gone through. A log without calls is an error, for which @reterr_message has
 * the first complaint; or, if there is none, that @path has no @what.
 *
 * Return: 0; or -EBADMSG and @reterr_message.
 */
_must_check_ int calllog_check(const struct calllog *log, const char *path, const char *what,
			       char **reterr_message);

/* Return: NULL. */
struct calllog *calllog_free(struct calllog *log);

/*
 * Make a source (decoder/util/batchsource.h) of the calls of @log, which belongs to it on success.
 * The lanes are merged: a piece of a lane is a slice, and slices come in the order of the times at
 * which they begin.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int callsource_new(struct calllog *log, struct batchsource **ret_source);
