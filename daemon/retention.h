/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Retention
 *
 * How much may be on disk, and what goes when that is too much. In this order:
 *   - copies in the store that nobody needs;
 *   - copies that no snapshot has, of programs that have ended;
 *   - the oldest snapshots, with the copies that no other one has.
 * The newest snapshot always stays, and so do those that somebody asked to keep.
 *
 * Before a snapshot is written, only what has to go for it to fit on the disk is removed, and only
 * if it is known to fit then. The limits are enforced when it is written: it may turn out to be the
 * last one that is any good.
 */

#include <stdint.h>

#include "base/base.h"
#include "daemon/spool/spool.h"

struct config;
struct objectstore;

struct retention {
	struct spool *spool; /* borrowed, as is the next */
	struct objectstore *store;
	struct spool_limits limits;
};

/* Have copies that no snapshot has, of programs that have ended, removed from the store, until
 * @bytes are free; none if they are not @least. Return: how many bytes became free. */
typedef uint64_t (*retention_evict_fn)(uint64_t bytes, uint64_t least, void *userdata);

/* Set the limits: those of @config, or what is the default on the spool's file system. Return: 0,
 * or negative errno and they are as they were. */
_must_check_ int retention_set_limits(struct retention *retention, const struct config *config);

/*
 * See to it that @needed more can be written. Not while another thread links to the store.
 *
 * Return: 0; -ENOSPC if there is not so much room and removing what may go would not help, so that
 *         nothing was removed; or another negative errno.
 */
_must_check_ int retention_make_room(const struct retention *retention,
				     const struct diskuse_amount *needed, retention_evict_fn evict,
				     void *userdata);

/*
 * Remove what is too much by the limits. Not while another thread links to the store.
 *
 * Return: 0, or negative errno.
 */
_must_check_ int retention_enforce(const struct retention *retention, retention_evict_fn evict,
				   void *userdata);
