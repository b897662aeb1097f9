/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/collector/hungusers.h"

#include "daemon/proc/claimant.h"

void hungusers_deinit(struct hungusers *hung)
{
	map_deinit(&hung->users);
	*hung = (struct hungusers){};
}

/* Not the owner of /proc/PID, which is root if the process has disabled core dumps. */
static bool find_user(uint32_t pid, uid_t *ret_user)
{
	_cleanup_(claimant_deinit) struct claimant by = claimant_find(NULL, pid);

	return by.pid_fd >= 0 && claimant_real_user(&by, ret_user);
}

void hungusers_note(struct hungusers *hung, uint32_t pid)
{
	uid_t user;

	if (find_user(pid, &user))
		hungusers_note_user(hung, user);
}

bool hungusers_has(const struct hungusers *hung, uint32_t pid)
{
	uid_t user;

	return hung->users.n_used > 0 && find_user(pid, &user) && hungusers_has_user(hung, user);
}

void hungusers_note_user(struct hungusers *hung, uid_t user)
{
	(void)!map_put(&hung->users, user, 1);
}

bool hungusers_has_user(const struct hungusers *hung, uid_t user)
{
	return map_get(&hung->users, user);
}
