/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/snapshot/userparts.h"

#include <unistd.h>

#include "util/subtract.h"

#define HALF    2u
#define QUARTER 4u

bool userparts_has_all(uid_t uid)
{
	return uid == 0 || uid == geteuid();
}

void userparts_add_user(struct userparts *parts, uid_t uid)
{
	if (!userparts_has_all(uid) && share_taken(&parts->users, uid) == 0)
		share_take(&parts->users, uid, 1);
}

uint64_t userparts_left(const struct userparts *parts, uid_t uid)
{
	const uint64_t part = share_part(&parts->users, parts->max, uid) / QUARTER;
	const uint64_t of_part = subtract(part, share_taken(&parts->taken, uid));
	const uint64_t of_half =
	    subtract(subtract(parts->max / HALF, parts->before), parts->taken.taken);

	if (userparts_has_all(uid))
		return UINT64_MAX;
	return of_part > of_half ? of_part : of_half;
}

void userparts_take(struct userparts *parts, uid_t uid, uint64_t bytes)
{
	share_take(&parts->taken, uid, bytes);
}
