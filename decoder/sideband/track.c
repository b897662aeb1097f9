/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/sideband/track.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ptd/record.h"

/* How many items are looked at before their memory is given back. */
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

/* Read @n items from item @i on; those that cannot be read say nothing. */
static void read_items(const struct tracks *tracks, size_t i, size_t n,
		       struct track_item *ret_items)
{
	if (table_read(&tracks->items, i, n, ret_items) == 0)
		return;
	for (size_t k = 0; k < n; k++)
		ret_items[k] =
		    (struct track_item){ .pid = PTD_ID_UNKNOWN, .tid = PTD_ID_UNKNOWN, .comm = "" };
}

static uint64_t start_of(const struct tracks *tracks, size_t i)
{
	struct track_item item;

	read_items(tracks, i, 1, &item);
	return item.start;
}

/* Return: the index in [low..high) of the last item that starts up to @time; low is one. */
static size_t search_item(const struct tracks *tracks, size_t low, size_t high, uint64_t time)
{
	while (high - low > 1) {
		const size_t middle = low + (high - low) / 2;

		if (start_of(tracks, middle) <= time)
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

	while (step < end - low && start_of(tracks, low + step) <= time) {
		low += step;
		step *= 2;
	}
	return search_item(tracks, low, step < end - low ? low + step : end, time);
}

/* Items that are read at once, because the one that is asked for next is mostly among them. */
struct near {
	struct track_item items[8];
	size_t n;
};

static void read_near(const struct tracks *tracks, size_t i, size_t end, struct near *ret_near)
{
	ret_near->n = end - i < ARRAY_LEN(ret_near->items) ? end - i : ARRAY_LEN(ret_near->items);
	read_items(tracks, i, ret_near->n, ret_near->items);
}

/* Item @at of @near holds up to the next one of its owner. */
static struct stay stay_of(const struct near *near, size_t at)
{
	const struct track_item *item = &near->items[at];

	return (struct stay){
		.start = item->start,
		.end = at + 1 < near->n ? item[1].start : UINT64_MAX,
		.pid = item->pid,
		.tid = item->tid,
		.space = item->space,
		.comm = item->comm,
	};
}

void tracks_find(const struct tracks *tracks, size_t owner, uint64_t time, struct stay *ret_stay)
{
	const bool known = owner < tracks->n_owners;
	const size_t first = known ? tracks->firsts[owner] : 0;
	const size_t end = known ? tracks->firsts[owner + 1] : 0;
	size_t i, at = 0;
	struct near near;

	*ret_stay = (struct stay){
		.end = UINT64_MAX, .pid = PTD_ID_UNKNOWN, .tid = PTD_ID_UNKNOWN, .comm = ""
	};
	if (first == end)
		return;
	/* Several threads may look: whichever of them wrote the hint, it is a place to begin at. */
	i = __atomic_load_n(&tracks->hints[owner], __ATOMIC_RELAXED);
	read_near(tracks, i, end, &near);
	if (time < near.items[0].start) {
		ret_stay->end = start_of(tracks, first);
		if (time < ret_stay->end)
			return;
		i = search_item(tracks, first, i, time);
		read_near(tracks, i, end, &near);
	} else if (near.items[near.n - 1].start <= time) {
		i = search_item_on(tracks, i + near.n - 1, end, time);
		read_near(tracks, i, end, &near);
	}
	while (at + 1 < near.n && near.items[at + 1].start <= time)
		at++;
	__atomic_store_n(&tracks->hints[owner], i + at, __ATOMIC_RELAXED);
	*ret_stay = stay_of(&near, at);
}
