/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * User parts
 *
 * How much of what belongs to each user a snapshot may have: the files that the user's programs
 * executed, code that is in no file, and the files of JIT compilers. Otherwise any user could make
 * a snapshot so large that older ones go for it.
 *
 * A snapshot may have everything as long as all snapshots take no more than half of what they may.
 * Beyond that it may have a quarter of each user's part (daemon/share/share.h) of what all
 * snapshots may take. A file that another snapshot has already takes no more room. There is no such
 * limit for root and the user that ptd runs as.
 *
 * Only the thread of a snapshot uses this.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/base.h"
#include "daemon/share/share.h"

#define USERPARTS_WHY "it is more than its user's share of a snapshot"

struct userparts {
	uint64_t max;       /* bytes that all snapshots may take together */
	uint64_t before;    /* bytes that the other snapshots take */
	struct share users; /* each user who has something that the snapshot may take has 1 */
	struct share taken; /* bytes that the snapshot took */
};

/* The user has something that the snapshot may take. To be called for all of them before
 * userparts_left(). */
void userparts_add_user(struct userparts *parts, uid_t uid);

/* Return: how many bytes more of the user's the snapshot may take. */
uint64_t userparts_left(const struct userparts *parts, uid_t uid);

/* Count that the snapshot takes @bytes more of the user's. */
void userparts_take(struct userparts *parts, uid_t uid, uint64_t bytes);

/* Return: whether the snapshot may have everything of the user. */
bool userparts_has_all(uid_t uid);
