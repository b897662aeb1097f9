/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * User streams
 *
 * The streams of the sideband (daemon/sideband/sideband.h), one for each user: which of them a
 * record belongs to, how much each may have, and what the daemon knew of them before it was started
 * again. They are of root, of as many users as there is room for, and of all others together.
 *
 * The event loop calls all functions.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/base.h"
#include "daemon/share/share.h"
#include "daemon/sideband/sideband.h"
#include "daemon/sideband/stream.h"
#include "daemon/source/kept.h"

struct record;
struct source;
struct tasks;

/* The stream of root is the first. */
#define USERSTREAMS_ROOT 0

struct userstreams {
	uint64_t bytes_max;
	struct stream all[KEPT_STREAMS_MAX];
	struct share share;    /* bytes of chunks */
	struct source *source; /* borrowed: knows whose a process is */
	unsigned n_asked;      /* how often it was asked that */
	uint64_t asked_since;  /* since when, in ns on CLOCK_MONOTONIC */
	bool has_dropped;
	struct sideband_dropped dropped;
};

/* Walk over the streams that somebody has. */
#define each_stream(u, st)                                                                   \
	for (typeof(&(u)->all[0]) st = (u)->all; (st) < (u)->all + KEPT_STREAMS_MAX; (st)++) \
		if ((st)->is_used)

void userstreams_init(struct userstreams *streams, struct source *source);
void userstreams_deinit(struct userstreams *streams);

/* Change the limit of all chunks together; a few are always allowed. */
void userstreams_set_max(struct userstreams *streams, uint64_t bytes_max);

/* --- whose records they are --- */

/* Return: whether records of that pid are of a process. */
bool userstreams_is_task(uint32_t pid);

/* Return: the stream of the user. */
struct stream *userstreams_of(struct userstreams *streams, uid_t uid);

/*
 * Choose the stream that a record belongs to. A process has the user of its parent until it
 * executes a program. So the source is asked seldom. A process that ends before the source can be
 * asked, or is new when it has been asked too often, counts for who made it.
 *
 * @ret_pid: whose record it is; 0: it is of no process
 */
struct stream *userstreams_choose(struct userstreams *streams, const struct record *record,
				  uint32_t *ret_pid);

/* --- room --- */

/* Return: how many bytes the stream may have now. */
uint64_t userstreams_limit(struct userstreams *streams, const struct stream *stream);

/* Return: the stream, not of root, that has the most, if that is more than its user's part; NULL if
 *         there is none. */
struct stream *userstreams_largest(struct userstreams *streams);

/* Append a record, whether there is room or not. Return: 0, or -ENOMEM. */
_must_check_ int userstreams_append(struct userstreams *streams, struct stream *stream,
				    bool is_head, const void *bytes, size_t size);

/* Count the chunks of all streams again. */
void userstreams_count(struct userstreams *streams);

/* Count records of one user that went, while those of others stayed. */
void userstreams_count_dropped(struct userstreams *streams, struct stream *stream, uint64_t n);

/* --- what is kept --- */

/* Write the record by which a stream says that another one has later records of the process. Such a
 * COMM record makes a reader forget what is mapped. Return: its size. */
size_t userstreams_write_mark(uint32_t pid, uint64_t time, void *to, size_t room);

/* Take the chunks of another process. Return: 0; -EBADMSG if what was kept makes no sense, and
 * there are none; or -ENOMEM. */
_must_check_ int userstreams_resume(struct userstreams *streams, const struct kept_sideband *kept);

/* Have a table of tasks hold what the records of some rows say. Return: 0, or the first error of
 * the table. */
_must_check_ int userstreams_note(struct userstreams *streams, enum stream_row first,
				  enum stream_row last, struct tasks *tasks);
