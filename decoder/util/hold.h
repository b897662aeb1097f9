/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Hold
 *
 * Counts the readers of runs of batches, so that their memory can be used again after the last one.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ptd/record.h"

struct ptd_hold {
	const struct ptd_run *runs; /* the memory that is held: */
	size_t n_runs;
	size_t thread; /* that wrote them, so that they may be in its CPU's cache */
	size_t n_users;
	void (*release)(struct ptd_hold *hold); /* the last user is gone; any thread may be that */
};

static inline struct ptd_hold *hold_ref(struct ptd_hold *hold)
{
	(void)__atomic_add_fetch(&hold->n_users, 1, __ATOMIC_RELAXED);
	return hold;
}

/* @hold may be NULL. */
static inline void hold_unref(struct ptd_hold *hold)
{
	if (hold && __atomic_sub_fetch(&hold->n_users, 1, __ATOMIC_ACQ_REL) == 0)
		hold->release(hold);
}

/* Return: whether what the batch points to stays as it is as long as its hold has a user. */
static inline bool hold_has(const struct ptd_batch *batch)
{
	const struct ptd_hold *hold = batch->hold;

	return hold && (uintptr_t)batch->runs >= (uintptr_t)hold->runs &&
	       (uintptr_t)(batch->runs + batch->n_runs) <= (uintptr_t)(hold->runs + hold->n_runs);
}
