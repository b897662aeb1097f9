/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Source emu
 *
 * The software PT source, as the daemon sees it: a pool of virtual CPUs in shared memory that
 * programs under QEMU write to (daemon/emu/pool.h). What is in that memory can be scribbled over by
 * a traced program at any time: nothing is read from it but heads and bytes, both are checked, and
 * the layout used is the copy that was made before anybody else saw it.
 */

#include "base/base.h"
#include "daemon/source/source.h"

struct config;

/*
 * Make the pool.
 *
 * Return: 0; -EOPNOTSUPP if PT= asks for packets that the software source does not write; or
 *         negative errno.
 */
_must_check_ int source_emu_new(const struct config *config, struct source **ret_source);

/*
 * Share the pool with a program that is about to be recorded, and set a bookmark: a snapshot may
 * leave out what the rings held before it, and on every CPU that is free now decoding can begin
 * there. The last 16 bookmarks are remembered.
 *
 * Return: the descriptor of the pool, which stays the source's; or -EOPNOTSUPP if @source is
 *         another one.
 */
_must_check_ int source_emu_share(struct source *source);
