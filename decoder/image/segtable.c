/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/image/segtable.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/map.h"

/*
 * A slot is used once it has a segment, and keeps its address from then on. When the slots are half
 * full, twice as many take their place. Those before may still be looked through, so they are kept.
 */
struct segtable_slots {
	struct segtable_slots *before;
	size_t n;
	struct slot {
		uint64_t ip;
		struct seg *seg; /* NULL: not used; released and acquired, with @ip */
	} slots[];
};

/* Return: the slot of @ip, with the segment that it had when it was seen; or the one that @ip would
 * take. */
static struct slot *slot_of(struct segtable_slots *slots, uint64_t ip, struct seg **ret_seg)
{
	for (size_t i = (size_t)map_mix(ip);; i++) {
		struct slot *slot = &slots->slots[i & (slots->n - 1)];

		*ret_seg = __atomic_load_n(&slot->seg, __ATOMIC_ACQUIRE);
		if (!*ret_seg || slot->ip == ip)
			return slot;
	}
}

void segtable_deinit(struct segtable *table)
{
	struct segtable_slots *slots = table->slots;

	while (slots) {
		struct segtable_slots *before = slots->before;

		free(slots);
		slots = before;
	}
	*table = (struct segtable){};
}

struct seg *segtable_find(const struct segtable *table, uint64_t ip)
{
	struct segtable_slots *slots = __atomic_load_n(&table->slots, __ATOMIC_ACQUIRE);
	struct seg *seg = NULL;

	if (slots)
		(void)slot_of(slots, ip, &seg);
	return seg;
}

static int grow(struct segtable *table)
{
	struct segtable_slots *slots, *before = table->slots;
	struct seg *seg;
	const size_t n = before ? 2 * before->n : 64;
	const size_t size = sizeof(*slots) + n * sizeof(slots->slots[0]);

	/* Not calloc(): see map.c. */
	slots = malloc(size);
	if (!slots)
		return -ENOMEM;
	memset(slots, 0, size);
	slots->before = before;
	slots->n = n;
	for (size_t i = 0; before && i < before->n; i++)
		if (before->slots[i].seg)
			*slot_of(slots, before->slots[i].ip, &seg) = before->slots[i];
	table->n_bytes += size;
	__atomic_store_n(&table->slots, slots, __ATOMIC_RELEASE);
	return 0;
}

int segtable_put(struct segtable *table, uint64_t ip, struct seg *seg)
{
	struct seg *before;
	struct slot *slot;
	int r;

	if (!table->slots || 2 * table->n_used >= table->slots->n) {
		r = grow(table);
		if (r < 0)
			return r;
	}
	slot = slot_of(table->slots, ip, &before);
	if (!before) {
		table->n_used++;
		slot->ip = ip;
	}
	__atomic_store_n(&slot->seg, seg, __ATOMIC_RELEASE);
	return 0;
}
