/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Trace source
 *
 * A drmemtrace directory, ptd's or DynamoRIO's, as the decoded stream: its files are merged by the
 * times that they state, and come out as the batches that a decoder of PT would have made.
 *
 * Only files whose time has come are open, and each is read as a stream, so memory depends on how
 * many threads run at the same time and on how much code they execute, not on the length of the
 * trace.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "ptd/record.h"

struct objects;
struct resolver;
struct tracesource;

/*
 * Open the directory @dir, whose objects are added to @objects; both this and @resolver are
 * borrowed.
 *
 * Return: 0; or negative errno and @reterr_message.
 */
_must_check_ int tracesource_new(const char *dir, struct objects *objects,
				 struct resolver *resolver, struct tracesource **ret_source,
				 char **reterr_message);
struct tracesource *tracesource_free(struct tracesource *source);

/*
 * Return: what is to be added to times of the stream to get CLOCK_REALTIME; 0 if the files do not
 *         state the time of day.
 */
int64_t tracesource_realtime_offset(const struct tracesource *source);

/* Begin the stream, anew if it was begun before. Return: 0; or negative errno. */
_must_check_ int tracesource_start(struct tracesource *source, char **reterr_message);

/*
 * Make the next batch. @ret_batch is valid until the next call; the id of its slice is not set.
 *
 * Return: 0, @ret_slice, the slice, whose id the caller sets, and @ret_new, whether the batch is
 * the
 *         first one of it; 1 at the end; or negative errno and @reterr_message.
 */
_must_check_ int tracesource_next(struct tracesource *source, struct ptd_batch *ret_batch,
				  struct ptd_slice **ret_slice, bool *ret_new,
				  char **reterr_message);

/*
 * Return: statistics of the stream so far, by CPU: numbers of instructions and of gaps, and times.
 *         They belong to @source.
 */
const struct ptd_cpu_stats *tracesource_stats(const struct tracesource *source, size_t *ret_n);

/* Return: the index in these of the last batch's CPU. */
size_t tracesource_cpu(const struct tracesource *source);

/* Return: how many gaps there were so far, by their reasons. */
const uint64_t *tracesource_gaps(const struct tracesource *source);

DEFINE_CLEANUP(struct tracesource *, tracesource_free);
