/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Retention
 *
 * Which snapshots and copies are removed when they take more of the disk than the limits allow. The
 * order is:
 *   - copies of the object store that nothing needs;
 *   - copies to which no snapshot links, of programs that have ended;
 *   - the oldest snapshots of a user who has more of the disk than his share (daemon/share), the
 *     one with the most first, as long as he has more;
 *   - the oldest snapshots of root; and if there are none, of any user.
 * With a snapshot go the copies that no other snapshot has. The newest snapshot is never removed,
 * nor is one that a user asked to keep. If the newest one is more than its user's share, it exceeds
 * the limits until another one is taken. No snapshot of others is removed to make room for one of a
 * user who would have more than his share with it.
 *
 * Snapshots may also be removed because they are old, whatever the disk has; then the newest one is
 * no exception.
 *
 * Before a snapshot is written, only as much is removed as the snapshot needs to fit on the disk,
 * and only if it is known to fit then. The limits are enforced afterwards: an older snapshot may be
 * the only good one if the new one cannot be written.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/base.h"
#include "daemon/share/share.h"
#include "daemon/spool/spool.h"

struct config;
struct objectstore;

/* The account of snapshots that were removed, or not written, because their users had more than
 * their share. Any thread may use it. */
struct evidence {
	pthread_mutex_t lock;
	struct share share;
};

/* Get a copy of the account. */
void evidence_get_share(struct evidence *evidence, struct share *ret_share);

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
 * Remove what exceeds the limits. No other thread may link to copies meanwhile.
 *
 * Return: 0, or negative errno.
 */
_must_check_ int retention_enforce(const struct retention *retention, retention_evict_fn evict,
				   void *userdata);
