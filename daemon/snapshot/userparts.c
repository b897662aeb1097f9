/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/snapshot/userparts.h"

#include "util/subtract.h"

#define HALF 2u

bool userparts_has_all(const struct userparts *parts, uid_t uid)
{
	return uid == 0 || uid == parts->asker;
}

void userparts_add_user(struct userparts *parts, uid_t uid)
{
	if (!userparts_has_all(parts, uid) && share_taken(&parts->users, uid) == 0)
		share_take(&parts->users, uid, 1);
}

uint64_t userparts_left(const struct userparts *parts, uid_t uid)
{
	const uint64_t part = share_part(&parts->users, parts->max, uid);
	const uint64_t least = part / USERPARTS_LEAST;
	const uint64_t of_part = subtract(part, share_taken(parts->others, uid));
	const uint64_t of_his =
	    subtract(of_part > least ? of_part : least, share_taken(&parts->taken, uid));
	const uint64_t of_half =
	    subtract(subtract(parts->max / HALF, parts->before), parts->taken.taken);

	if (userparts_has_all(parts, uid))
		return UINT64_MAX;
	return of_his > of_half ? of_his : of_half;
}

void userparts_take(struct userparts *parts, uid_t uid, uint64_t bytes)
{
	share_take(&parts->taken, uid, bytes);
}
