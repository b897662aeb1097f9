/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Stock
 *
 * The snapshots that there are, how much removing each would free, and which one goes next.
 *
 * Snapshots go in this order:
 *   - the oldest snapshots of a user who has more of the disk than his share (daemon/share), the
 *     one with the most first, as long as he has more;
 *   - the oldest snapshots of root; and if there are none, of any user.
 * The newest snapshot does not go, nor does one that a user asked to keep.
 *
 * For a snapshot of a user other than root, less goes. If he has more than his part with it, only
 * older ones of his own. Otherwise also what others, root included, have beyond their parts, but
 * not the newest one of each; and then older ones of his own.
 *
 * A stock removes nothing: whoever removes a snapshot says so by stock_remove(), also if it would
 * only be removed.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/base.h"
#include "daemon/spool/diskuse.h"
#include "daemon/spool/spool.h"

struct objectstore;

struct stock {
	struct spool_entry *entries;
	size_t n; /* oldest first */
	bool *gone;
	bool *latest; /* the newest one of its user */
	struct diskuse *use;
};

/* What the users share. */
struct stock_limit {
	uint64_t max; /* bytes of snapshots that there is room for */
	/* For whose snapshot something is to be removed; root: less is spared, as for nobody. */
	uid_t uid;
	uint64_t needed; /* how much room it needs if it is to be written */
	bool only_own;   /* nothing of others goes for the user */
};

/* Measure all snapshots of the spool. Return: 0, or negative errno. */
_must_check_ int stock_take(struct spool *spool, struct objectstore *store,
			    struct stock *ret_stock);
void stock_deinit(struct stock *stock);

/* Count the snapshot of user @uid in the directory @dir_fd as the newest one. Nothing is gone then.
 * Return: 0; or negative errno, and the stock is of no more use. */
_must_check_ int stock_add_newest(struct stock *stock, int dir_fd, uid_t uid);

/*
 * Choose the snapshot that goes next.
 *
 * @ret_has_more: its user has more than his share
 *
 * Return: its number; the number of snapshots if none may go.
 */
size_t stock_choose(const struct stock *stock, const struct stock_limit *limit, bool *ret_has_more);

/* The snapshot @i stays, but is not chosen again. */
void stock_pass_over(struct stock *stock, size_t i);

/* The snapshot @i is gone. Return: how much became free. */
struct diskuse_amount stock_remove(struct stock *stock, size_t i);

/* Return: whether there is a snapshot of another user that is not gone. */
bool stock_has_of_others(const struct stock *stock, uid_t uid);
