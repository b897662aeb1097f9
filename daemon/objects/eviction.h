/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Eviction
 *
 * Which objects of the object store (daemon/objects/objectstore.h), or which of their copies, go
 * when there are too many. Those that are needed least go first: objects that could not be copied,
 * then objects that no program has mapped, then the others; those of owners who have more than
 * their part before those of the rest, and among equals the one that was not named for the longest
 * time. An object to which anybody but the store refers stays.
 *
 * The event loop calls all functions. The lock of the store is held.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/base.h"

struct copier;
struct object;
struct share;

/* What there is to choose from; all pointers are borrowed. */
struct eviction {
	struct copier *copier;
	struct object *const *objects;
	size_t n_objects;
	uint64_t moment; /* what was named after it is mapped by programs that run */
};

/* Mark objects that are to be forgotten, until half of OBJECTSTORE_SOFT_MAX are left; those that
 * programs have mapped only until 7/8 of OBJECTSTORE_MAX are left. Return: 0 or -ENOMEM. */
_must_check_ int eviction_choose(const struct eviction *eviction);

/*
 * Mark objects that no program has mapped, and to whose copies no snapshot links, until these
 * copies have @bytes; if they have less than @least, mark none.
 *
 * Return: 0 and how many bytes become free, about; or -ENOMEM.
 */
_must_check_ int eviction_choose_alone(const struct eviction *eviction, uint64_t bytes,
				       uint64_t least, uint64_t *ret_bytes);

/* Return: whether copies are to be taken back, as @share says, of which all may take @max. */
bool eviction_is_due(const struct share *share, uint64_t max);

/*
 * Take copies back from those who are to give, until nobody is to give more.
 *
 * Return: 0, how many bytes become free with the next sweep, and the owner of the last of these
 *         copies, which is only set if there is one; or -ENOMEM.
 */
_must_check_ int eviction_take_back(const struct eviction *eviction, uint64_t *ret_freed,
				    uid_t *ret_uid);
