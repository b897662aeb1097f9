/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * User parts
 *
 * How much of what belongs to each user a snapshot may have: the files that his programs executed,
 * code that is in no file, and the files of his JIT compilers. Whatever a user executes would
 * otherwise go into a snapshot that somebody else asks for, and older snapshots of that one would
 * go for it.
 *
 * All snapshots that somebody else asked for may have a user's part (daemon/share/share.h) of what
 * all snapshots may take together. They may have more as long as all snapshots take no more than
 * half of that. And however much they have, each may have an eighth of his part: what a user ran
 * last is worth more than what he ran a week ago. What another one of these snapshots has already
 * takes no more room; whose a file is in an older snapshot is not known after a restart, until a
 * program has executed the file again. Root and the user who asked for the snapshot may have
 * everything.
 *
 * Code that is in no file, and the files of JIT compilers, are no other snapshot's, and count in
 * each that has them: its manifest says how much of whose it has.
 *
 * Only the thread of a snapshot uses this.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/base.h"
#include "daemon/share/share.h"

/* A user's part divided by this is what each snapshot may have of his. */
#define USERPARTS_LEAST 8u

#define USERPARTS_WHY "it is more than its user's share of the snapshots that others take"

struct userparts {
	uid_t asker;                /* who asked for the snapshot */
	uint64_t max;               /* bytes that all snapshots may take together */
	uint64_t before;            /* bytes that the other snapshots take */
	const struct share *others; /* bytes of each user's files and code that snapshots of
				     * somebody else have; borrowed */

	/* Return: whether @others counts the file whose name in the store has that hash. */
	bool (*is_held)(void *userdata, uint64_t stored);
	void *userdata; /* borrowed */

	struct share users; /* each user who has something that the snapshot may take has 1 */
	struct share taken; /* bytes that the snapshot took */
};

/* The user has something that the snapshot may take. To be called for all of them before
 * userparts_left(). */
void userparts_add_user(struct userparts *parts, uid_t uid);

/* Return: how many bytes more of what is the user's the snapshot may take. */
uint64_t userparts_left(const struct userparts *parts, uid_t uid);

/* Count that the snapshot takes @bytes more of what is the user's. */
void userparts_take(struct userparts *parts, uid_t uid, uint64_t bytes);

/* Return: whether the snapshot may have all that is the user's. */
bool userparts_has_all(const struct userparts *parts, uid_t uid);
