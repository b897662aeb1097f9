/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Source emu
 *
 * The software source: pools of virtual CPUs in shared memory, to which programs under QEMU write
 * (daemon/emu/pool.h). Each user has a pool of his own (daemon/soft/userpool.h), which is made when
 * he first records something: so what a program writes into it says nothing of other users'
 * programs. Pools are numbered from 0. With n CPUs in each, the pool N has the CPUs N * n to
 * N * n + n - 1 of the source.
 *
 * There are at most KEPT_POOLS_MAX pools. SHARE_PART of them have rings as large as the settings
 * say; further users have small ones. If another user needs its place, or its room, the pool is
 * freed that has been at rest for the longest time.
 */

#include <stdbool.h>
#include <sys/types.h>

#include "base/base.h"
#include "daemon/source/source.h"

struct config;
struct keeperlink;
struct share;

/*
 * Make the source, without a pool; or go on with the pools that @link has from an earlier process,
 * if their layout is what the settings ask for. The keeper gets the pools. @link may be NULL, and
 * is borrowed as long as the source lives. The collector's socket is in @runtime_dir.
 *
 * Return: 0; -EOPNOTSUPP if PT= turns off TSC packets, which the software source always writes; or
 *         negative errno.
 */
_must_check_ int source_emu_new(const struct config *config, struct keeperlink *link,
				const char *runtime_dir, struct source **ret_source);

/*
 * Share the pool of the user @uid with a program of his that is about to be recorded, and set a
 * bookmark in the pool: a snapshot may leave out what the rings held before it, and on every CPU
 * that is free now decoding can begin there.
 *
 * @timing: the program is going to write MTC and CYC packets, whatever the settings are; snapshots
 *          then say that there are such packets
 *
 * Return: the descriptor of the pool, which stays the source's; -EOPNOTSUPP if @source is another
 *         one; -EDQUOT if so many users are recorded that there is no pool for this one; or another
 *         negative errno.
 */
_must_check_ int source_emu_share(struct source *source, uid_t uid, bool timing);

/* Set a bookmark in all pools, for a client that is going to take a snapshot of all of them. A pool
 * remembers only some bookmarks, so not every client may have that done. */
void source_emu_mark_all(struct source *source);

/* What is counted for each user. */
enum source_emu_account {
	SOURCE_EMU_RINGS,   /* bytes of pools; refused: users who got a small pool, or none */
	SOURCE_EMU_RECORDS, /* refused: records about processes of others */
};

/* Get a copy of an account; of another source it is empty. */
void source_emu_get_share(const struct source *source, enum source_emu_account account,
			  struct share *ret_share);
