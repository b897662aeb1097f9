/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/room.h"

#include "base/log.h"
#include "daemon/config.h"
#include "daemon/keep.h"

static uint64_t limit_bytes(const struct config_limit *limit, uint64_t capacity)
{
	return limit->percent > 0 ? capacity / 100 * limit->percent : limit->bytes;
}

int room_set_limits(struct room *room, const struct config *config)
{
	uint64_t capacity;
	int r;

	r = spool_capacity(room->spool, &capacity);
	if (r < 0)
		return r;
	room->limits = (struct spool_limits){
		.max_use = limit_bytes(&config->max_use, capacity),
		.keep_free = limit_bytes(&config->keep_free, capacity),
	};
	return 0;
}

int room_make(const struct room *room, uint64_t needed, size_t n_stay, size_t *ret_n_removed)
{
	int r;

	r = spool_vacuum(room->spool, &room->limits, needed, n_stay, ret_n_removed);
	if (*ret_n_removed > 0)
		log_notice("removed %zu old snapshot%s: MaxUse= or KeepFree= %s", *ret_n_removed,
			   plural(*ret_n_removed),
			   needed > 0 ? "would not have been kept" : "was reached");
	if (r == 0 && *ret_n_removed > 0)
		r = keep_sweep(room->keep);
	return r;
}
