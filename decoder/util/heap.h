/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Heap
 *
 * A VEC whose item 0 comes before all others, and each item @i before the items 2 * @i + 1 and
 * 2 * @i + 2. comes_before(a, b) is a function, or a macro, of two items.
 */

#include <stddef.h>

/* Move the item at @at, which may come too early, down to its place. */
#define heap_sink(v, at, comes_before)                                                            \
	do {                                                                                      \
		__typeof__((v)->items) _items = (v)->items;                                       \
		size_t _i = (at), _first = _i;                                                    \
                                                                                                  \
		for (;; _i = _first) {                                                            \
			const __typeof__(*_items) _item = _items[_i];                             \
                                                                                                  \
			for (size_t _child = 2 * _i + 1; _child <= 2 * _i + 2 && _child < (v)->n; \
			     _child++)                                                            \
				if (comes_before(_items[_child], _items[_first]))                 \
					_first = _child;                                          \
			if (_first == _i)                                                         \
				break;                                                            \
			_items[_i] = _items[_first];                                              \
			_items[_first] = _item;                                                   \
		}                                                                                 \
	} while (0)

/* Move the item at @at, which may come too late, up to its place. */
#define heap_lift(v, at, comes_before)                                           \
	do {                                                                     \
		__typeof__((v)->items) _items = (v)->items;                      \
		size_t _i = (at);                                                \
                                                                                 \
		for (; _i > 0 && comes_before(_items[_i], _items[(_i - 1) / 2]); \
		     _i = (_i - 1) / 2) {                                        \
			const __typeof__(*_items) _item = _items[_i];            \
                                                                                 \
			_items[_i] = _items[(_i - 1) / 2];                       \
			_items[(_i - 1) / 2] = _item;                            \
		}                                                                \
	} while (0)

/* Make a heap of the items. */
#define heap_make(v, comes_before)                          \
	do {                                                \
		for (size_t _n = (v)->n; _n > 0; _n--)      \
			heap_sink(v, _n - 1, comes_before); \
	} while (0)

/* Remove the first item; there must be one. */
#define heap_drop(v, comes_before)                     \
	do {                                           \
		(v)->items[0] = (v)->items[--(v)->n];  \
		if ((v)->n > 0)                        \
			heap_sink(v, 0, comes_before); \
	} while (0)
