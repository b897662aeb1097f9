/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Hung users
 *
 * The users of processes that the collector could not find out something about in time: a user can
 * have memory and files that never come. A client that asks about many processes waits for
 * each user once.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/base.h"
#include "util/map.h"

struct hungusers {
	struct map users;
};

void hungusers_deinit(struct hungusers *hung);

/* Note that the collector took too long for the process @pid. */
void hungusers_note(struct hungusers *hung, uint32_t pid);

/* Return: whether that was so for a process of the same user. */
bool hungusers_has(const struct hungusers *hung, uint32_t pid);

/* The same for a user. */
void hungusers_note_user(struct hungusers *hung, uid_t user);
bool hungusers_has_user(const struct hungusers *hung, uid_t user);
