/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "util/map.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

/* Who chooses the keys does not know this number, and so cannot make them collide. */
static uint64_t hash_secret(void)
{
	/* All threads that are first at the same time find the same. */
	static _Atomic uint64_t known;
	uint64_t value = atomic_load_explicit(&known, memory_order_relaxed);
	const void *random = value ? NULL : (const void *)getauxval(AT_RANDOM);

	if (random) {
		memcpy(&value, random, sizeof(value));
		atomic_store_explicit(&known, value, memory_order_relaxed);
	}
	return value;
}

/* Keys are addresses and small numbers, which differ in few bits: spread them over all. */
uint64_t map_mix(uint64_t key)
{
	key = (key ^ hash_secret()) * UINT64_C(0x9e3779b97f4a7c15);
	return (key ^ key >> 32) * UINT64_C(0xd6e8feb86659fd93) >> 20;
}

static size_t slot_of(const struct map *map, uint64_t key)
{
	size_t i = (size_t)map_mix(key);

	for (i &= map->n_slots - 1; map->slots[i].used && map->slots[i].key != key;)
		i = (i + 1) & (map->n_slots - 1);
	return i;
}

static int grow_map(struct map *map)
{
	struct map bigger = { .n_slots = map->n_slots ? map->n_slots * 2 : 16 };

	if (bigger.n_slots > SIZE_MAX / sizeof(*bigger.slots))
		return -ENOMEM;
	/*
	 * Not calloc(): a page that is read first, and written to later, takes two faults, and at
	 * the second one the kernel interrupts all CPUs that run other threads.
	 */
	bigger.slots = malloc(bigger.n_slots * sizeof(*bigger.slots));
	if (!bigger.slots)
		return -ENOMEM;
	memset(bigger.slots, 0, bigger.n_slots * sizeof(*bigger.slots));

	for (size_t i = 0; i < map->n_slots; i++)
		if (map->slots[i].used)
			bigger.slots[slot_of(&bigger, map->slots[i].key)] = map->slots[i];
	bigger.n_used = map->n_used;
	free(map->slots);
	*map = bigger;
	return 0;
}

void map_deinit(struct map *map)
{
	free(map->slots);
	*map = (struct map){};
}

uint64_t *map_get(const struct map *map, uint64_t key)
{
	size_t i;

	if (!map->n_slots)
		return NULL;
	i = slot_of(map, key);
	return map->slots[i].used ? &map->slots[i].value : NULL;
}

int map_put(struct map *map, uint64_t key, uint64_t value)
{
	size_t i;
	int r;

	/* At most three quarters full, so that a probe always ends. */
	if (map->n_used + 1 > map->n_slots / 4 * 3) {
		r = grow_map(map);
		if (r < 0)
			return r;
	}

	i = slot_of(map, key);
	map->n_used += !map->slots[i].used;
	map->slots[i] = (struct map_slot){ .key = key, .value = value, .used = true };
	return 0;
}

/* FNV-1a. */
uint64_t map_hash(const void *bytes, size_t size)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < size; i++)
		h = (h ^ ((const uint8_t *)bytes)[i]) * UINT64_C(0x100000001b3);
	return h;
}
