/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Tracks
 *
 * What held from when on, for each of many owners (a CPU, a thread): items are added in the order
 * of time, whoever they belong to; then put in order by owner; then looked up by owner and time.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "util/table.h"

struct space;

/* One thread's stay on one CPU. */
struct stay {
	uint64_t start;
	uint64_t end; /* exclusive; UINT64_MAX: until the end of the trace */
	uint32_t pid; /* PTD_ID_UNKNOWN: the records do not say; 0: idle */
	uint32_t tid;
	const struct space *space; /* NULL: none known */
	const char *comm;          /* at its start; "" if not known */
};

struct track_item {
	uint64_t start;
	uint32_t owner;
	uint32_t pid;
	uint32_t tid;
	const struct space *space; /* borrowed, like comm */
	const char *comm;
};

struct tracks {
	struct table items; /* of struct track_item */
	size_t *firsts;     /* by owner: index of its first item; one more for the end */
	size_t *hints;      /* by owner: index of the item that was found last */
	size_t n_owners;
};

void tracks_init(struct tracks *tracks);
void tracks_deinit(struct tracks *tracks);

/* Add an item; the starts of one owner never go backwards. Return: 0 or -ENOMEM. */
_must_check_ int tracks_add(struct tracks *tracks, const struct track_item *item);

/* Order what was added; the owners are 0 to @n_owners - 1. Return: 0 or -ENOMEM. */
_must_check_ int tracks_finish(struct tracks *tracks, size_t n_owners);

/*
 * What held for @owner at @time; before its first item, and for nobody's number, all is unknown.
 * Fast when the times that are asked for grow.
 */
void tracks_find(const struct tracks *tracks, size_t owner, uint64_t time, struct stay *ret_stay);
