/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/sideband/track.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ptd/record.h"

/* So many items are looked at before their memory is given back. */
#define REST 512

void tracks_init(struct tracks *tracks, struct spills *spills)
{
	*tracks = (struct tracks){};
	table_init(&tracks->items, sizeof(struct track_item), spills);
}

void tracks_deinit(struct tracks *tracks)
{
	table_deinit(&tracks->items);
	free(tracks->firsts);
	free(tracks->hints);
	tracks_init(tracks, tracks->items.spill.spills);
}

int tracks_add(struct tracks *tracks, const struct track_item *item)
{
	return table_push(&tracks->items, item);
}

/* Put the items of each owner where its number in @next says. */
static void distribute(const struct table *from, struct table *to, size_t *next)
{
	const struct track_item *items = from->items;
	struct track_item *sorted = to->items;

	for (size_t i = 0; i < from->n; i++) {
		sorted[next[items[i].owner]++] = items[i];
		if (i % REST == 0) {
			table_evict(from);
			table_evict(to);
		}
	}
}

/* A counting sort, which keeps the order of each owner's items. */
static int sort_by_owner(struct table *items, struct table *sorted, size_t n_owners, size_t *firsts,
			 size_t *next)
{
	int r;

	r = table_finish(items);
	if (r == 0)
		r = table_push_zeros(sorted, items->n);
	if (r == 0)
		r = table_finish(sorted);
	if (r < 0)
		return r;

	for (size_t i = 0; i < items->n; i++) {
		const uint32_t owner = ((const struct track_item *)items->items)[i].owner;

		assert(owner < n_owners);
		firsts[owner + 1]++;
		if (i % REST == 0)
			table_evict(items);
	}
	for (size_t i = 0; i < n_owners; i++)
		firsts[i + 1] += firsts[i];
	memcpy(next, firsts, (n_owners + 1) * sizeof(*next));
	distribute(items, sorted, next);
	table_unmap(sorted);
	memcpy(next, firsts, (n_owners + 1) * sizeof(*next));
	return 0;
}

int tracks_finish(struct tracks *tracks, size_t n_owners)
{
	_cleanup_(freep) size_t *firsts = calloc(n_owners + 1, sizeof(*firsts));
	_cleanup_(freep) size_t *next = calloc(n_owners + 1, sizeof(*next));
	struct table sorted;
	int r;

	if (!firsts || !next)
		return -ENOMEM;
	table_init(&sorted, sizeof(struct track_item), tracks->items.spill.spills);
	r = sort_by_owner(&tracks->items, &sorted, n_owners, firsts, next);
	if (r < 0) {
		table_deinit(&sorted);
		return r;
	}

	table_deinit(&tracks->items);
	tracks->items = sorted;
	tracks->firsts = TAKE(firsts);
	tracks->hints = TAKE(next);
	tracks->n_owners = n_owners;
	return 0;
}

/* Item @i; one that cannot be read tells nothing. */
static struct track_item read_item(const struct tracks *tracks, size_t i)
{
	struct track_item item;

	if (table_read(&tracks->items, i, &item) < 0)
		item =
		    (struct track_item){ .pid = PTD_ID_UNKNOWN, .tid = PTD_ID_UNKNOWN, .comm = "" };
	return item;
}

/* Return: the index in [low..high) of the last item that starts up to @time; low is one. */
static size_t search_item(const struct tracks *tracks, size_t low, size_t high, uint64_t time)
{
	while (high - low > 1) {
		const size_t middle = low + (high - low) / 2;

		if (read_item(tracks, middle).start <= time)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* The same from item @i on, which starts up to @time: mostly it is not far, so that is looked at
 * first. */
static size_t search_item_on(const struct tracks *tracks, size_t i, size_t end, uint64_t time)
{
	size_t low = i, step = 1;

	while (step < end - low && read_item(tracks, low + step).start <= time) {
		low += step;
		step *= 2;
	}
	return search_item(tracks, low, step < end - low ? low + step : end, time);
}

void tracks_find(const struct tracks *tracks, size_t owner, uint64_t time, struct stay *ret_stay)
{
	const bool known = owner < tracks->n_owners;
	const size_t first = known ? tracks->firsts[owner] : 0;
	const size_t end = known ? tracks->firsts[owner + 1] : 0;
	struct track_item item = {};
	size_t i;

	if (first < end)
		item = read_item(tracks, first);
	if (first == end || time < item.start) {
		*ret_stay = (struct stay){
			.end = first == end ? UINT64_MAX : item.start,
			.pid = PTD_ID_UNKNOWN,
			.tid = PTD_ID_UNKNOWN,
			.comm = "",
		};
		return;
	}

	/* Several threads may look: whichever of them wrote the hint, it is a place to begin at. */
	i = __atomic_load_n(&tracks->hints[owner], __ATOMIC_RELAXED);
	i = time < read_item(tracks, i).start ? search_item(tracks, first, i, time)
					      : search_item_on(tracks, i, end, time);
	__atomic_store_n(&tracks->hints[owner], i, __ATOMIC_RELAXED);
	item = read_item(tracks, i);
	*ret_stay = (struct stay){
		.start = item.start,
		.end = i + 1 < end ? read_item(tracks, i + 1).start : UINT64_MAX,
		.pid = item.pid,
		.tid = item.tid,
		.space = item.space,
		.comm = item.comm,
	};
}
