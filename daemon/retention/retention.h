/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Retention
 *
 * Which snapshots and copies are removed when they take more of the disk than the limits allow.
 *
 * Copies to which no snapshot links are no evidence yet, and go first: those that nothing needs,
 * then those of programs that have ended. They have a part of MaxUse= that snapshots do not take,
 * and may take more as long as snapshots leave it. The object store is told how much that is, and
 * takes copies back from users who have more than their share, also those of programs that run. So
 * no snapshot goes for what programs a user runs.
 *
 * Then the oldest snapshot goes, and with it the copies that no other snapshot has. The newest
 * snapshot is never removed, nor is one that a user asked to keep.
 *
 * KeepFree= is no reason to remove more than the newest snapshot has taken: any user can fill the
 * disk, and removing evidence does not help against that.
 *
 * Snapshots may also be removed because they are old, whatever the disk has; then the newest one is
 * no exception.
 *
 * Before a snapshot is written, only as much is removed as the snapshot needs to fit on the disk,
 * and only if it is known to fit then. The limits are enforced afterwards: an older snapshot may be
 * the only good one if the new one cannot be written.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "daemon/spool/spool.h"

struct config;
struct objectstore;

/* MaxUse= divided by this is left for copies to which no snapshot links. */
#define RETENTION_COPIES_PART 8u

struct retention {
	struct spool *spool;       /* borrowed */
	struct objectstore *store; /* borrowed */
	struct spool_limits limits;
	uint64_t max_age_ns;         /* of a snapshot; 0: no limit */
	_Atomic uint64_t *n_removed; /* counts the removed snapshots; borrowed */
	_Atomic uint64_t *taken;     /* bytes of snapshots when they were measured last; borrowed */
};

/* Remove copies to which no snapshot links, of programs that have ended, until @bytes are free; if
 * less than @least would become free, remove nothing. Return: how many bytes became free. */
typedef uint64_t (*retention_evict_fn)(uint64_t bytes, uint64_t least, void *userdata);

/* Return: whether a snapshot is older than the limit, and may be removed; or negative errno. */
_must_check_ int retention_has_expired(const struct retention *retention);

/* Set the limits to those of @config, in which a share means a share of the spool's file system.
 * Return: 0; or negative errno, and the limits stay as they were. */
_must_check_ int retention_set_limits(struct retention *retention, const struct config *config);

/*
 * Make room for @needed more. No other thread may link to copies meanwhile.
 *
 * Return: 0; -ENOSPC if there is not so much room and removing what may be removed would not
 *         suffice: nothing was removed; or another negative errno.
 */
_must_check_ int retention_make_room(const struct retention *retention,
				     const struct diskuse_amount *needed, retention_evict_fn evict,
				     void *userdata);

/* Get how many bytes all snapshots may take together, but no more than there is room for on the
 * disk. Return: 0, or negative errno. */
_must_check_ int retention_get_max(const struct retention *retention, uint64_t *ret_max);

/*
 * Remove what exceeds the limits, and say to the object store how much room there is for copies. No
 * other thread may link to copies meanwhile.
 *
 * @was_written: the newest snapshot was just written; otherwise the limits changed
 *
 * Return: 0, or negative errno.
 */
_must_check_ int retention_enforce(const struct retention *retention, bool was_written,
				   retention_evict_fn evict, void *userdata);

/* Remove the snapshots that are older than MaxAge=. No other thread may link to copies meanwhile.
 * Return: 0, or negative errno. */
_must_check_ int retention_expire(const struct retention *retention);

/* Say to the object store how much room there is for copies, after snapshots were removed. Return:
 * 0; or negative errno, and the object store goes on with what it was told before. */
_must_check_ int retention_set_room(const struct retention *retention);
