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
#include "util/vec.h"

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
 * Find the item of @key in the array @v (vec.h): @map has its index. One that is missing is added,
 * with the value; without memory nothing changes.
 *
 * Return: a pointer to the item, valid until one is added; NULL: there is no memory.
 */
#define map_item(map, key, v, ...)                                    \
	({                                                            \
		uint64_t _mi;                                         \
		int _mr = vec_reserve((v), 1);                        \
		if (_mr == 0)                                         \
			_mr = map_number((map), (key), (v)->n, &_mi); \
		if (_mr > 0)                                          \
			_mr = vec_push((v), __VA_ARGS__);             \
		_mr < 0 ? NULL : &(v)->items[_mi];                    \
	})

/* Return: the value of @key, if values are pointers; NULL if there is none. */
static inline void *map_pointer(const struct map *map, uint64_t key)
{
	const uint64_t *found = map_get(map, key);

	return found ? (void *)(uintptr_t)*found : NULL;
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
