/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/room.h"

#include "base/log.h"
#include "daemon/config.h"
#include "daemon/keep.h"

int room_set_limits(struct room *room, const struct config *config)
{
	struct spool_limits limits;
	int r;

	r = spool_default_limits(room->spool, &limits);
	if (r < 0)
		return r;
	if (config->max_use != CONFIG_SHARE)
		limits.max_use = config->max_use;
	if (config->keep_free != CONFIG_SHARE)
		limits.keep_free = config->keep_free;
	room->limits = limits;
	return 0;
}

int room_make(const struct room *room, uint64_t needed, size_t n_stay, size_t *ret_n_removed)
{
	int r;

	r = spool_vacuum(room->spool, &room->limits, needed, n_stay, ret_n_removed);
	if (*ret_n_removed > 0)
		log_notice("removed %zu old snapshots: MaxUse= or KeepFree= %s", *ret_n_removed,
			   needed > 0 ? "would not have been kept" : "was reached");
	if (r == 0 && *ret_n_removed > 0)
		r = keep_sweep(room->keep);
	return r;
}
