/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/helper/collector/hungusers.h"

#include "daemon/proc/process.h"

void hungusers_deinit(struct hungusers *hung)
{
	map_deinit(&hung->users);
	*hung = (struct hungusers){};
}

void hungusers_note(struct hungusers *hung, uint32_t pid)
{
	uid_t user;

	if (process_real_user_of(pid, &user) == 0)
		hungusers_note_user(hung, user);
}

bool hungusers_has(const struct hungusers *hung, uint32_t pid)
{
	uid_t user;

	return hung->users.n_used > 0 && process_real_user_of(pid, &user) == 0 &&
	       hungusers_has_user(hung, user);
}

void hungusers_note_user(struct hungusers *hung, uid_t user)
{
	(void)!map_put(&hung->users, user, 1);
}

bool hungusers_has_user(const struct hungusers *hung, uid_t user)
{
	return map_get(&hung->users, user);
}
