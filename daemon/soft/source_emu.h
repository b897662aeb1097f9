/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Source emu
 *
 * The software source: a pool of virtual CPUs in shared memory, to which programs under QEMU write
 * (daemon/plugin/pool.h). A recorded program can overwrite it with anything at any time. Therefore
 * only heads and bytes of rings are read from it, both are checked, and the layout is the copy that
 * was made before any program saw the pool. Records that make no sense are left out
 * (daemon/soft/poolrecords.h).
 */

#include <stdbool.h>

#include "base/base.h"
#include "daemon/source/source.h"

struct config;
struct keeperlink;

/*
 * Make the source; or go on with the pool that @link has from an earlier process, if its layout is
 * what the settings ask for. The keeper gets the pool. @link may be NULL, and is borrowed as long
 * as the source lives.
 *
 * Return: 0; -EOPNOTSUPP if PT= turns off TSC packets, which the software source always writes; or
 *         negative errno.
 */
_must_check_ int source_emu_new(const struct config *config, struct keeperlink *link,
				struct source **ret_source);

/*
 * Share the pool with a program that is about to be recorded, and set a bookmark in it: a snapshot
 * may leave out what the rings held before it, and on every CPU that is free now decoding can begin
 * there.
 *
 * @timing: the program is going to write MTC and CYC packets, whatever the settings are; snapshots
 *          then say that there are such packets
 *
 * Return: the descriptor of the pool, which stays the source's; or -EOPNOTSUPP if @source is
 *         another one.
 */
_must_check_ int source_emu_share(struct source *source, bool timing);
