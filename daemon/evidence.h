/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Evidence
 *
 * The account of what snapshots have of each user: whose snapshots were removed, or not written,
 * because their users had more than their share; and how much of each user's files and code the
 * snapshots of somebody else have.
 *
 * The event loop and the thread that writes a snapshot use it at the same time.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/base.h"
#include "daemon/share/share.h"
#include "util/map.h"

struct evidence {
	pthread_mutex_t lock;
	struct share share;

	/* When the snapshots were measured last: */
	uint64_t taken;      /* bytes of all of them */
	struct share others; /* bytes of each user's files and code in snapshots of somebody else */
	struct map held; /* their keys are map_hash() of the names of these files in the store */
};

void evidence_init(struct evidence *evidence);

/* Free what it has of its own. */
void evidence_deinit(struct evidence *evidence);

/* Get a copy of the account. */
void evidence_get_share(struct evidence *evidence, struct share *ret_share);

/* Count that a snapshot of the user was refused, or was removed. */
void evidence_count(struct evidence *evidence, uid_t uid, enum share_reason reason);

/* The snapshots were measured: they take @taken bytes. */
void evidence_set_taken(struct evidence *evidence, uint64_t taken);

/* What they have of each user's files and code in snapshots of somebody else: @others, and in
 * @held, which is taken over, the keys of struct evidence. */
void evidence_set_held(struct evidence *evidence, const struct share *others, struct map *held);

/* Get what was set last. */
void evidence_get_use(struct evidence *evidence, uint64_t *ret_taken, struct share *ret_others);

/* Return: whether a snapshot of somebody else has the file of a user whose name in the store has
 *         that hash. */
bool evidence_holds(struct evidence *evidence, uint64_t stored);
