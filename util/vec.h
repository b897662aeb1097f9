/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Vec
 *
 * A growing array of any type: VEC(struct foo) v = {}; v.items[i], v.n. Adding an item may move all
 * items, so pointers into the array do not stay valid.
 */

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/base.h"

#define VEC(type)                  \
	struct {                   \
		type *items;       \
		size_t n;          \
		size_t n_capacity; \
	}

/* Make room for @more items after the last. Return: 0 or -ENOMEM; nothing changes on failure. */
#define vec_reserve(v, more) \
	vec_reserve_raw((void **)&(v)->items, (v)->n, &(v)->n_capacity, (more), sizeof(*(v)->items))

/* Add a copy of the value. Return: 0 or -ENOMEM. */
#define vec_push(v, ...)                                                             \
	({                                                                           \
		int _vr = vec_reserve((v), 1);                                       \
		if (_vr == 0)                                                        \
			(v)->items[(v)->n++] = (__typeof__(*(v)->items))__VA_ARGS__; \
		_vr;                                                                 \
	})

/*
 * Get item @i. An array that is shorter is made longer, with copies of the value.
 *
 * Return: a pointer to the item, valid until an item is added; NULL: there is no memory.
 */
#define vec_at(v, i, ...)                                                            \
	({                                                                           \
		const size_t _at = (i);                                              \
		int _ar = _at < (v)->n ? 0 : vec_reserve((v), _at + 1 - (v)->n);     \
		while (_ar == 0 && (v)->n <= _at)                                    \
			(v)->items[(v)->n++] = (__typeof__(*(v)->items))__VA_ARGS__; \
		_ar == 0 ? &(v)->items[_at] : NULL;                                  \
	})

/* Sort the items by @compare, as qsort() takes it. */
#define vec_sort(v, compare)                                                       \
	do {                                                                       \
		if ((v)->n > 1)                                                    \
			qsort((v)->items, (v)->n, sizeof(*(v)->items), (compare)); \
	} while (0)

#define vec_deinit(v)                         \
	do {                                  \
		free((v)->items);             \
		(v)->items = NULL;            \
		(v)->n = (v)->n_capacity = 0; \
	} while (0)

/*
 * Free the array, and first what its items have: @free_item is a statement about @item, a pointer
 * to one of the items.
 */
#define vec_deinit_each(v, item, free_item)                                 \
	do {                                                                \
		for (size_t _each = 0; _each < (v)->n; _each++) {           \
			__typeof__(*(v)->items) *item = &(v)->items[_each]; \
			free_item;                                          \
		}                                                           \
		vec_deinit(v);                                              \
	} while (0)

/*
 * Find a place in a sorted array. @is_before is an expression over @item, a pointer to one of the
 * items: it must be true for the first items and false for all others.
 *
 * Return: the number of items for which it is true.
 */
#define vec_bisect(v, item, is_before)                                                \
	({                                                                            \
		size_t _low = 0, _high = (v)->n;                                      \
		while (_low < _high) {                                                \
			const size_t _middle = _low + (_high - _low) / 2;             \
			const __typeof__(*(v)->items) *(item) = &(v)->items[_middle]; \
			if (is_before)                                                \
				_low = _middle + 1;                                   \
			else                                                          \
				_high = _middle;                                      \
		}                                                                     \
		_low;                                                                 \
	})

_must_check_ static inline int vec_reserve_raw(void **items, size_t n, size_t *n_capacity,
					       size_t more, size_t item_size)
{
	size_t capacity = *n_capacity ? *n_capacity : 8;
	void *grown;

	if (more <= *n_capacity - n)
		return 0;
	if (more > SIZE_MAX / 4 / item_size - n)
		return -ENOMEM;
	while (capacity < n + more)
		capacity *= 2;

	grown = realloc(*items, capacity * item_size);
	if (!grown)
		return -ENOMEM;

	*items = grown;
	*n_capacity = capacity;
	return 0;
}
