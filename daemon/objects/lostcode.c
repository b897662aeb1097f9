/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/objects/lostcode.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#define PAGE UINT64_C(4096)

void lostcode_deinit(struct lostcode *lost)
{
	vec_deinit(&lost->ranges);
}

static uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t max_u64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static struct lostcode_range range_hull(const struct lostcode_range *a,
					const struct lostcode_range *b)
{
	return (struct lostcode_range){
		.start = min_u64(a->start, b->start),
		.last = max_u64(a->last, b->last),
		.time = min_u64(a->time, b->time),
	};
}

/* Return: whether @a ends before @b and does not touch it. */
static bool is_apart(const struct lostcode_range *a, const struct lostcode_range *b)
{
	return a->last < b->start && b->start - a->last > 1;
}

void lostcode_join(struct lostcode *lost)
{
	for (; lost->ranges.n > 1; lost->ranges.n--)
		lost->ranges.items[0] =
		    range_hull(&lost->ranges.items[0], &lost->ranges.items[lost->ranges.n - 1]);
}

static int add_range(struct lostcode *lost, struct lostcode_range range)
{
	struct lostcode_range *items;
	size_t from, to;

	if (lost->ranges.n == LOSTCODE_MAX)
		lostcode_join(lost);
	if (vec_reserve(&lost->ranges, 1) < 0)
		return -ENOMEM;
	items = lost->ranges.items;
	from = vec_bisect(&lost->ranges, r, is_apart(r, &range));
	for (to = from; to < lost->ranges.n && !is_apart(&range, &items[to]); to++)
		range = range_hull(&range, &items[to]);
	memmove(items + from + 1, items + to, (lost->ranges.n - to) * sizeof(*items));
	lost->ranges.n = lost->ranges.n - (to - from) + 1;
	items[from] = range;
	return 0;
}

int lostcode_add(struct lostcode *lost, uint64_t address, uint64_t size, uint64_t time)
{
	if (size == 0)
		return 0;
	return add_range(lost, (struct lostcode_range){
				   .start = address - address % PAGE,
				   .last = (address + (size - 1)) | (PAGE - 1),
				   .time = time,
			       });
}

int lostcode_add_all(struct lostcode *lost, const struct lostcode *other)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < other->ranges.n; i++)
		r = add_range(lost, other->ranges.items[i]);
	return r;
}
