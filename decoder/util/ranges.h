/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Ranges
 *
 * Ranges of addresses that do not overlap, in the order of their addresses, each with data of the
 * caller. In a plain array an insertion moves all items behind it; here it moves a few. The code of
 * a JIT compiler can be a million ranges, which come in any order.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "util/vec.h"

/* The beginning of each item. */
struct range {
	uint64_t start;
	uint64_t last; /* inclusive */
};

struct ranges_chunk;

struct ranges {
	size_t item_size;
	VEC(struct ranges_chunk *) chunks; /* none is empty */
	size_t n;                          /* items */
};

/* The place of an item, or the end; valid until something is replaced. */
struct ranges_place {
	size_t chunk, item;
};

void ranges_init(struct ranges *ranges, size_t item_size);
void ranges_deinit(struct ranges *ranges);

/* Remove all items. */
void ranges_clear(struct ranges *ranges);

/* Return: the place of the first item that ends at or above @address; the end if there is none. */
struct ranges_place ranges_find(const struct ranges *ranges, uint64_t address);

/* Return: the place after @place, which is that of an item. */
struct ranges_place ranges_next(const struct ranges *ranges, struct ranges_place place);

/* Return: the item, valid until something is replaced; NULL at the end. */
void *ranges_get(const struct ranges *ranges, struct ranges_place place);

/*
 * Replace the @n_old items from @place on by the @n_new items at @items, at most 8. The caller sees
 * to it that the ranges are in order and do not overlap afterwards.
 *
 * Return: 0; or -ENOMEM, and nothing has changed.
 */
_must_check_ int ranges_replace(struct ranges *ranges, struct ranges_place place, size_t n_old,
				const void *items, size_t n_new);
