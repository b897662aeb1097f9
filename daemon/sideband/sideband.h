/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Sideband
 *
 * The task records of the recent past, in memory that has a limit, complete from a known time on.
 * They lie in chunks that only grow at their end, so that a snapshot in another thread can go on
 * reading a view while more records are added.
 *
 * There are two epochs, each of half the limit. When the present one is full, or old, the older one
 * is freed and a new one begins. It begins with records of all tasks that live, so that a process
 * that was started long ago keeps its name and its mappings. Tasks that ended before the older
 * epoch began are forgotten. A snapshot states the time from which its sideband is complete.
 *
 * The records that an epoch begins with come from the source (source_ops.tasks). A source whose
 * records name every task answers at once, and the epoch is complete. Any other source has to look
 * at the tasks. For that it is called again and again (sideband_wants_look()), and the epoch is
 * complete when it has seen all of them. A look may take longer than an epoch does to be full,
 * since looks are limited to a part of a CPU's time. Then another epoch begins with what is known
 * from the last look and all records since, and is complete at once; the look goes on. So, however
 * quickly records come, none is lost for want of room, but the records reach back less far.
 *
 * When records were lost, nothing older can be relied on: a new epoch begins, and the older one is
 * freed.
 *
 * A process that maps and unmaps the same code again and again would fill the epochs quickly, and
 * the records of all other processes would be forgotten. Since no record describes munmap, all but
 * the first of such records say nothing (tasks_repeats()), and they are left out.
 *
 * One user could fill the epochs all the same. So the records of each user's processes are a stream
 * of their own (daemon/sideband/stream.h), whose account follows the rule of daemon/share/share.h.
 * A stream that has as much as its user may have begins a new epoch of itself: it forgets its
 * oldest records, and begins with what its processes have mapped then. What ran before that cannot
 * be decoded; but nothing is decoded wrongly, since of no process later records are forgotten than
 * earlier ones. Records of other users stay. A snapshot states whose records begin later. Root's
 * stream begins an epoch with all others.
 *
 * The chunks lie in the kept state of the source (daemon/source/kept.h), if it has one.
 *
 * The event loop calls all functions. Other threads may read the spans of a view.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/base.h"
#include "base/cursor.h"
#include "daemon/sideband/tasks.h"

struct share;
struct sideband;
struct sideband_chunk;
struct source;

#define SIDEBAND_NEVER ((uint64_t)INT64_MAX)

/* The users that can have records of their own. */
#define SIDEBAND_USERS_MAX 16u

/* A user whose records are complete only from a later time on. */
struct sideband_cut {
	uid_t uid; /* SHARE_OTHERS: all for whom there is no account of their own */
	uint64_t since_ns;
	uint64_t n_dropped; /* of their records, went since the start, while others' stayed */
};

/* All records at one moment. */
struct sideband_view {
	struct cursor *spans; /* oldest first; each holds whole records */
	size_t n_spans;
	struct sideband_chunk **chunks; /* that the spans point into, referenced */
	/* The records are complete from this time on, in ns on their clock. 0: since the recorder
	 * was started. SIDEBAND_NEVER: they are not complete yet. */
	uint64_t since_ns;
	struct tasks_range *ranges; /* anonymous executable memory of the tasks that live */
	size_t n_ranges;
	struct sideband_cut cuts[SIDEBAND_USERS_MAX];
	size_t n_cuts;
};

struct sideband_stats {
	uint64_t bytes; /* of memory in use */
	uint64_t bytes_max;
	uint64_t lost;      /* records that had no room since the start, here or in the source */
	uint64_t n_repeats; /* records that said nothing new, and were left out */
};

/*
 * @bytes_max: limit of the memory; a few chunks are always allowed
 * @alive: see tasks_new()
 * @source: is asked which tasks live; borrowed
 *
 * Return: 0, or -ENOMEM.
 */
_must_check_ int sideband_new(uint64_t bytes_max, tasks_alive_fn alive, struct source *source,
			      struct sideband **ret_sideband);
struct sideband *sideband_free(struct sideband *sideband);

DEFINE_CLEANUP(struct sideband *, sideband_free);

/* Change the limit. What a lower limit does not allow is freed as the epochs end. */
void sideband_set_max(struct sideband *sideband, uint64_t bytes_max);

/*
 * Add whole, valid records, which record_next() accepts.
 *
 * Return: 0; -ENOSPC if records were refused or there are too many tasks; or -ENOMEM.
 */
_must_check_ int sideband_add(struct sideband *sideband, const uint8_t *bytes, size_t size);

/* Return: whether an epoch has begun for which the source has to look at the tasks. */
bool sideband_wants_look(const struct sideband *sideband);

/* Return: the user in whose stream the latest records of the process are; 0: root, or not known. */
uid_t sideband_user(const struct sideband *sideband, uint32_t pid);

/* Return: the tasks as the records that were added describe them. */
const struct tasks *sideband_known(const struct sideband *sideband);

/*
 * Add one record of a task that the source found when it looked. The function is a
 * record_put_fn.
 *
 * Return: 0; -ENOSPC or -ENOMEM: the record is lost.
 */
_must_check_ int sideband_add_found(void *sideband, const void *bytes, size_t size);

/* The source has looked at all tasks: the epoch is complete, unless records were lost meanwhile. */
void sideband_end_look(struct sideband *sideband);

/* Publish the state of the sideband, with the rest of the source's kept state: a later process can
 * go on from here. */
void sideband_publish(const struct sideband *sideband);

/*
 * Go on from what another process published, in a sideband that is new.
 *
 * Return: 0; -EBADMSG if that makes no sense: the sideband knows nothing of the time before; or
 *         -ENOMEM.
 */
_must_check_ int sideband_resume(struct sideband *sideband);

/*
 * Make a view, which stays valid until sideband_view_deinit(), whatever is added.
 *
 * Return: 0, or -ENOMEM.
 */
_must_check_ int sideband_view_init(const struct sideband *sideband,
				    struct sideband_view *ret_view);
void sideband_view_deinit(struct sideband_view *view);

/* Call @list for what the tasks that live have mapped of files: see tasks_list_mapped(). */
void sideband_list_mapped(const struct sideband *sideband,
			  void (*list)(void *userdata, const struct record_mmap2 *mmap),
			  void *userdata);

/* Return: whether there is a process that repeats itself, and was not returned yet. */
bool sideband_next_storm(struct sideband *sideband, struct tasks_storm *ret_storm);

/* A user whose records were forgotten while those of others stayed. */
struct sideband_dropped {
	uid_t uid;
	uint64_t n_records; /* of theirs, since the start */
};

/* Return: whether there is one who was not returned yet. */
bool sideband_next_dropped(struct sideband *sideband, struct sideband_dropped *ret_dropped);

/* Return: the account of the sideband's memory. It counts how often users' records were
 * forgotten. */
const struct share *sideband_share(const struct sideband *sideband);

/* Return: how many epochs have begun, as far as it matters for what is remembered beside the
 * records. The records of the last two of them are there. */
uint64_t sideband_epochs(const struct sideband *sideband);

struct sideband_stats sideband_stats(const struct sideband *sideband);
