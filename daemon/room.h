/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Room
 *
 * How much may be on disk, and what goes when that is too much: the oldest snapshots, and with them
 * the copies in the store that no other needs.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "daemon/spool.h"

struct config;
struct keep;

struct room {
	struct spool *spool; /* borrowed, as is the next */
	struct keep *keep;
	struct spool_limits limits;
};

/* Set the limits: those of @config, or what is the default on the spool's file system. Return: 0,
 * or negative errno and they are as they were. */
_must_check_ int room_set_limits(struct room *room, const struct config *config);

/*
 * Remove snapshots until the limits are kept even when @needed more bytes are written, but none of
 * the newest @n_stay. Not while another thread links to the store.
 *
 * Return: 0, or negative errno; and how many were removed, in any case.
 */
_must_check_ int room_make(const struct room *room, uint64_t needed, size_t n_stay,
			   size_t *ret_n_removed);
