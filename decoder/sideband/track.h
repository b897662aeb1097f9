/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Tracks
 *
 * What held from which time on, for each of many owners (CPUs, or threads). Items are added in the
 * order of time, for all owners; then they are sorted by owner; then they are found by owner and
 * time.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/util/table.h"

struct space;

/* One thread's stay on one CPU. */
struct stay {
	uint64_t start; /* ns */
	uint64_t end;   /* exclusive; UINT64_MAX: until the end of the trace */
	uint32_t pid;   /* PTD_ID_UNKNOWN: the records do not state it; 0: idle */
	uint32_t tid;
	const struct space *space; /* NULL: not known */
	const char *comm;          /* at the start of the stay; "": not known */
};

struct track_item {
	uint64_t start; /* ns; the item holds until the owner's next one */
	uint32_t owner;
	uint32_t pid;
	uint32_t tid;
	const struct space *space; /* borrowed, like comm */
	const char *comm;
};

struct tracks {
	struct table items; /* of struct track_item */
	size_t *firsts; /* for each owner, the index of its first item; and the number of items */
	size_t *hints;  /* for each owner, the index of the item that was found last */
	size_t n_owners;
};

/* What does not fit into memory is one of @spills, which are borrowed; or NULL. */
void tracks_init(struct tracks *tracks, struct spills *spills);
void tracks_deinit(struct tracks *tracks);

/* Add an item, which must not start before the last item of its owner. Return: 0 or -ENOMEM. */
_must_check_ int tracks_add(struct tracks *tracks, const struct track_item *item);

/* Sort the items, whose owners are 0 to @n_owners - 1. Return: 0 or -ENOMEM. */
_must_check_ int tracks_finish(struct tracks *tracks, size_t n_owners);

/*
 * Find what held for @owner at @time (ns). Before the owner's first item, and if there is no such
 * owner, all is unknown. The search is fast if the times of successive calls grow.
 */
void tracks_find(const struct tracks *tracks, size_t owner, uint64_t time, struct stay *ret_stay);
