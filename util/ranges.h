/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Ranges
 *
 * Ranges of addresses that do not overlap, by address, with something of the caller's about each.
 * In an array whatever comes before others moves all of them; here it moves a few: a JIT compiler's
 * code can be a million ranges, in any order.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "util/vec.h"

/* How each item begins. */
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

/* Of an item, or behind the last; valid until something is replaced. */
struct ranges_place {
	size_t chunk, item;
};

void ranges_init(struct ranges *ranges, size_t item_size);
void ranges_deinit(struct ranges *ranges);

/* Forget all items. */
void ranges_clear(struct ranges *ranges);

/* Return: the place of the first item that ends at or above @address. */
struct ranges_place ranges_find(const struct ranges *ranges, uint64_t address);

/* Return: the place behind that of an item. */
struct ranges_place ranges_next(const struct ranges *ranges, struct ranges_place place);

/* Return: the item, valid until something is replaced; NULL behind the last. */
void *ranges_get(const struct ranges *ranges, struct ranges_place place);

/*
 * Put the @n_new items, at the most 8, in the place of the @n_old from @place on. Whether they are
 * in order there is the caller's affair.
 *
 * Return: 0; -ENOMEM, and nothing has changed.
 */
_must_check_ int ranges_replace(struct ranges *ranges, struct ranges_place place, size_t n_old,
				const void *items, size_t n_new);
