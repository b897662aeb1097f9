/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/sideband/track.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/sideband/timeline.h"
#include "ptd/record.h"

void tracks_deinit(struct tracks *tracks)
{
	vec_deinit(&tracks->items);
	free(tracks->firsts);
	free(tracks->hints);
	*tracks = (struct tracks){};
}

int tracks_add(struct tracks *tracks, const struct track_item *item)
{
	return vec_push(&tracks->items, *item);
}

/* A counting sort, which keeps the order of each owner's items. */
int tracks_finish(struct tracks *tracks, size_t n_owners)
{
	_cleanup_(freep) size_t *firsts = calloc(n_owners + 1, sizeof(*firsts));
	_cleanup_(freep) size_t *next = calloc(n_owners + 1, sizeof(*next));
	const size_t n = tracks->items.n;
	struct track_item *sorted = calloc(n ?: 1, sizeof(*sorted));

	if (!firsts || !next || !sorted) {
		free(sorted);
		return -ENOMEM;
	}

	for (size_t i = 0; i < n; i++) {
		assert(tracks->items.items[i].owner < n_owners);
		firsts[tracks->items.items[i].owner + 1]++;
	}
	for (size_t i = 0; i < n_owners; i++)
		firsts[i + 1] += firsts[i];

	memcpy(next, firsts, (n_owners + 1) * sizeof(*next));
	for (size_t i = 0; i < n; i++)
		sorted[next[tracks->items.items[i].owner]++] = tracks->items.items[i];

	free(tracks->items.items);
	tracks->items.items = sorted;
	tracks->items.n_capacity = n ?: 1;

	memcpy(next, firsts, (n_owners + 1) * sizeof(*next));
	tracks->firsts = TAKE(firsts);
	tracks->hints = TAKE(next);
	tracks->n_owners = n_owners;
	return 0;
}

/* Return: the index in [low..high) of the last item that starts up to @time; low is one. */
static size_t search(const struct track_item *items, size_t low, size_t high, uint64_t time)
{
	while (high - low > 1) {
		const size_t middle = low + (high - low) / 2;

		if (items[middle].start <= time)
			low = middle;
		else
			high = middle;
	}
	return low;
}

void tracks_find(const struct tracks *tracks, size_t owner, uint64_t time, struct stay *ret_stay)
{
	const struct track_item *items = tracks->items.items;
	const bool known = owner < tracks->n_owners;
	const size_t first = known ? tracks->firsts[owner] : 0;
	const size_t end = known ? tracks->firsts[owner + 1] : 0;
	size_t i;

	if (first == end || time < items[first].start) {
		*ret_stay = (struct stay){
			.end = first == end ? UINT64_MAX : items[first].start,
			.pid = PTD_ID_UNKNOWN,
			.tid = PTD_ID_UNKNOWN,
			.comm = "",
		};
		return;
	}

	/* Mostly it is the item of the last time, or the one behind it. */
	i = tracks->hints[owner];
	if (time < items[i].start)
		i = search(items, first, i, time);
	else if (i + 1 < end && items[i + 1].start <= time)
		i = i + 2 == end || time < items[i + 2].start ? i + 1
							      : search(items, i + 2, end, time);
	tracks->hints[owner] = i;

	*ret_stay = (struct stay){
		.start = items[i].start,
		.end = i + 1 < end ? items[i + 1].start : UINT64_MAX,
		.pid = items[i].pid,
		.tid = items[i].tid,
		.space = items[i].space,
		.comm = items[i].comm,
	};
}
