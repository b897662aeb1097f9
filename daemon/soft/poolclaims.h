/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Pool claims
 *
 * Which processes and threads the records of a pool are believed about. Every program of the user
 * who has the pool can write into it what it likes. So a number is believed if the kernel says that
 * the process or thread with this number has the rights of that user, and no others. If it has
 * ended, the kernel says nothing any more: it is believed if no other pool was believed about that
 * number. Root's pool is believed about all, since root can do anything with other programs anyway.
 *
 * Any thread may use the claims.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/base.h"

/* Numbers that are remembered for one pool. If there are more, those that have ended are
 * forgotten. */
#define POOLCLAIMS_MAX 16384u

struct poolclaims;

/* Return: 0, or -ENOMEM. */
_must_check_ int poolclaims_new(struct poolclaims **ret_claims);

/* Return: NULL. */
struct poolclaims *poolclaims_free(struct poolclaims *claims);

DEFINE_CLEANUP(struct poolclaims *, poolclaims_free);

/* One walk over records of a pool. A number that was believed once is believed to its end. */
struct poolclaims_walk {
	struct poolclaims *claims; /* borrowed */
	uint32_t pool;             /* its place among the pools, less than 256 */
	uid_t uid;                 /* whose pool it is */
	uint64_t serial;
	/* Numbers that may still be looked up. Without a limit, records could name so many that the
	 * recorder does nothing else. Further ones are not believed. */
	unsigned n_lookups;
};

/* Begin a walk that looks up @n_lookups numbers at most. */
struct poolclaims_walk poolclaims_begin(struct poolclaims *claims, uint32_t pool, uid_t uid,
					unsigned n_lookups);

/* Return: whether the pool is believed about the process or thread @number. */
bool poolclaims_believe(struct poolclaims_walk *walk, uint32_t number);

/* Find the pool that was believed about the process or thread last. Return: whether one was. */
bool poolclaims_find(struct poolclaims *claims, uint32_t number, uint32_t *ret_pool);

/* Forget what was believed of a pool, which is to be another user's. */
void poolclaims_forget(struct poolclaims *claims, uint32_t pool);
