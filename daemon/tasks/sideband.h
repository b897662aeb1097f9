/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Sideband
 *
 * The task records since a moment from which they are complete, in memory that has a limit. They
 * are kept in chunks that only grow at their end, so that a snapshot in another thread can go on
 * reading a view while more records come in.
 *
 * There are two epochs, each of half the limit. When the present one is full, or old, the older one
 * goes, and a new one begins with records of those who live, so that a process that was started
 * long ago keeps its name and its mappings. What ended before the older epoch began is forgotten; a
 * snapshot says since when its sideband is complete.
 *
 * Those records come from the source (source_ops.tasks). One whose records name every task tells at
 * once what they said, and the epoch is complete. Another one has to look at the tasks, for which
 * it is asked again and again (sideband_wants_tasks()), and the epoch is complete when it has told
 * of all of them.
 *
 * When records were lost, nothing older can be relied on: a new epoch begins, without an older one.
 *
 * A process that maps and unmaps the same code without end would have the epochs roll ever faster,
 * and everybody's records be forgotten. Since nothing tells of munmap, all but the first of such
 * records say nothing (tasks_repeats()): they are left out.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "base/cursor.h"
#include "daemon/tasks/tasks.h"

struct sideband;
struct sideband_chunk;
struct source;

#define SIDEBAND_NEVER ((uint64_t)INT64_MAX)

/* All records at one moment, oldest first; each span holds whole records. */
struct sideband_view {
	struct cursor *spans;
	size_t n_spans;
	struct sideband_chunk **chunks; /* those the spans point into, referenced */
	uint64_t since_ns;              /* complete from then on; 0: since the recorder was started;
			      SIDEBAND_NEVER: not yet */
	struct tasks_range *ranges;     /* anonymous executable memory of those who live */
	size_t n_ranges;
};

struct sideband_stats {
	uint64_t bytes; /* memory in use */
	uint64_t bytes_max;
	/* Records that there was no room for since the start, here or in the source. */
	uint64_t lost;
	uint64_t n_repeats; /* records that said nothing new, and were left out */
};

/* @alive: see tasks_new(). @source: borrowed; it is asked which tasks live. Return: 0, or
 * -ENOMEM. */
_must_check_ int sideband_new(uint64_t bytes_max, tasks_alive_fn alive, struct source *source,
			      struct sideband **ret_sideband);
struct sideband *sideband_free(struct sideband *sideband);

DEFINE_CLEANUP(struct sideband *, sideband_free);

/* Change the limit. What is more than a lower one allows goes as the epochs end. */
void sideband_set_max(struct sideband *sideband, uint64_t bytes_max);

/*
 * Add whole, valid records (record_next() has seen them).
 *
 * Return: 0; -ENOSPC if records were refused, or tasks are too many; or -ENOMEM.
 */
_must_check_ int sideband_add(struct sideband *sideband, const uint8_t *bytes, size_t size);

/* Return: whether an epoch has begun for which the source has to look at the tasks. */
bool sideband_wants_tasks(const struct sideband *sideband);

/* Return: the tasks as the records that were added describe them. */
const struct tasks *sideband_known(const struct sideband *sideband);

/*
 * Add one record that tells of a task as it is now. Of the type of record_put_fn.
 *
 * Return: 0; -ENOSPC or -ENOMEM: it is lost.
 */
_must_check_ int sideband_put_task(void *sideband, const void *bytes, size_t size);

/* All have been told of: the epoch is complete, unless records were lost meanwhile. */
void sideband_end_tasks(struct sideband *sideband);

/*
 * Take a view. It stays valid, whatever is added, until sideband_view_deinit(); both are called in
 * the sideband's own thread, reading the spans may happen in another.
 *
 * Return: 0, or -ENOMEM.
 */
_must_check_ int sideband_view_init(const struct sideband *sideband,
				    struct sideband_view *ret_view);
void sideband_view_deinit(struct sideband_view *view);

/* What those who live have mapped of files, as far as is known: see tasks_tell_mapped(). */
void sideband_tell_mapped(const struct sideband *sideband,
			  void (*tell)(void *userdata, const struct record_mmap2 *mmap),
			  void *userdata);

/* Return: whether there is a process that repeats itself, and was not returned yet. */
bool sideband_next_storm(struct sideband *sideband, struct tasks_storm *ret_storm);

/* How many epochs have begun. When one more has, the records of the one before the last are
 * gone. */
uint64_t sideband_epochs(const struct sideband *sideband);

struct sideband_stats sideband_stats(const struct sideband *sideband);
