/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Retention
 *
 * Which snapshots and copies are removed when they take more of the disk than the limits allow.
 *
 * Copies to which no snapshot links are no evidence yet, and go first: those that nothing needs,
 * then those of programs that have ended. They have a part of MaxUse= that snapshots do not take,
 * and may take more as long as snapshots leave it; how much that is, is said to the object store,
 * which takes copies back, also those of programs that run, from users who have more than their
 * share. So whatever programs a user runs, no snapshot goes for that.
 *
 * Then snapshots go, in the order that daemon/stock.h states, and with each the copies that no
 * other snapshot has. The newest snapshot is never removed, nor is one that a user asked to keep.
 *
 * What one user executes does not make a snapshot of somebody else so large that older ones go for
 * it: of his files, such snapshots have no more than his part (daemon/snapshot/userparts.h).
 *
 * For a snapshot of a user other than root, less goes. If that is not enough, the snapshot is
 * refused, unless all the others are his own.
 *
 * KeepFree= is no reason to remove more than the newest snapshot has taken, nor others' for a
 * user's: any user can fill the disk, and what others take of it is not made good by evidence.
 *
 * Snapshots may also be removed because they are old, whatever the disk has; then the newest one is
 * no exception.
 *
 * Before a snapshot is written, only as much is removed as the snapshot needs to fit on the disk,
 * and only if it is known to fit then. The limits are enforced afterwards: an older snapshot may be
 * the only good one if the new one cannot be written.
 */

#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/base.h"
#include "daemon/spool/spool.h"

struct config;
struct evidence;
struct objectstore;

/* MaxUse= divided by this is left for copies to which no snapshot links. */
#define RETENTION_COPIES_PART 8u

struct retention {
	struct spool *spool;       /* borrowed */
	struct objectstore *store; /* borrowed */
	struct spool_limits limits;
	uint64_t max_age_ns;         /* of a snapshot; 0: no limit */
	_Atomic uint64_t *n_removed; /* counts the removed snapshots; borrowed */
	struct evidence *evidence;   /* counts what users had to give; borrowed */
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
 * Make room for @needed more, for a snapshot of user @uid. No other thread may link to copies
 * meanwhile.
 *
 * Return: 0; -ENOSPC if there is not so much room and removing what may be removed would not
 *         suffice, or -EDQUOT if it is the user's share that does not suffice: nothing was removed;
 *         or another negative errno.
 */
_must_check_ int retention_make_room(const struct retention *retention,
				     const struct diskuse_amount *needed, uid_t uid,
				     retention_evict_fn evict, void *userdata);

/* Return: whether there is room for @needed more within KeepFree=, without removing anything; or
 *         negative errno. */
_must_check_ int retention_has_room(const struct retention *retention,
				    const struct diskuse_amount *needed);

/*
 * Get how many bytes all snapshots may take together, but no more than there is room for on the
 * disk. Also get, as of the time when the limits were enforced last or a snapshot was removed, how
 * many bytes the snapshots took, and how many bytes of each user's files and code the snapshots of
 * somebody else had.
 *
 * Return: 0, or negative errno.
 */
_must_check_ int retention_get_use(const struct retention *retention, uint64_t *ret_max,
				   uint64_t *ret_taken, struct share *ret_others);

/*
 * Find out whether the snapshot of user @uid that was written into the directory @dir_fd, and is
 * not visible yet, may become so: it fits into MaxUse= without any snapshot of others that does not
 * go for it. Nothing is removed.
 *
 * Return: 0; -EDQUOT if it may not; or another negative errno.
 */
_must_check_ int retention_admit(const struct retention *retention, int dir_fd, uid_t uid);

/*
 * Remove what exceeds the limits, and say to the object store how much room there is for copies. No
 * other thread may link to copies meanwhile.
 *
 * @newest_of: whose snapshot the newest one is, if it was just written; NULL if the limits changed
 *
 * Return: 0, or negative errno.
 */
_must_check_ int retention_enforce(const struct retention *retention, const uid_t *newest_of,
				   retention_evict_fn evict, void *userdata);

/* Remove the snapshots that are older than MaxAge=. No other thread may link to copies meanwhile.
 * Return: 0, or negative errno. */
_must_check_ int retention_expire(const struct retention *retention);

/*
 * Keep the snapshot @id for user @uid: it is not removed to make room. What is kept for one user,
 * but root, is no more than his part of what snapshots may take.
 *
 * Return: 0; -ENOENT if there is no such snapshot; -EDQUOT if he keeps too much; or another
 *         negative errno.
 */
_must_check_ int retention_keep(const struct retention *retention, const char *id, uid_t uid);

/* Say to the object store how much room there is for copies, after snapshots were removed. Return:
 * 0; or negative errno, and the object store goes on with what it was told before. */
_must_check_ int retention_set_room(const struct retention *retention);
