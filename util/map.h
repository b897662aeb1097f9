/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Map
 *
 * A hash table from 64-bit keys to 64-bit values, with open addressing. Keys cannot be removed.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

struct map_slot {
	uint64_t key;
	uint64_t value;
	bool used;
};

struct map {
	struct map_slot *slots;
	size_t n_slots; /* 0 or a power of two */
	size_t n_used;
};

void map_deinit(struct map *map);

/* Return: a pointer to the value of @key, valid until the next map_put(); NULL if there is none. */
uint64_t *map_get(const struct map *map, uint64_t key);

/* Set the value of @key. Return: 0 or -ENOMEM. */
_must_check_ int map_put(struct map *map, uint64_t key, uint64_t value);

/*
 * Find the value of @key, which is @next from now on if it had none.
 *
 * Return: 1 if it had none; 0; or -ENOMEM.
 */
_must_check_ static inline int map_number(struct map *map, uint64_t key, uint64_t next,
					  uint64_t *ret_value)
{
	const uint64_t *found = map_get(map, key);
	const int r = found ? 0 : map_put(map, key, next);

	*ret_value = found ? *found : next;
	return found || r < 0 ? r : 1;
}

/*
 * Return: a hash of @key, of 44 bits that depend on all bits of the key, and on a
 * number that the chooser of the keys does not know.
 */
uint64_t map_mix(uint64_t key);

/*
 * Return: a hash of the bytes, for keys that are not numbers. Different bytes may have the same
 * hash.
 */
uint64_t map_hash(const void *bytes, size_t size);
