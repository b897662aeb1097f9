/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Table
 *
 * A long array of items of one size. Only a few are in use at a time. Items are added
 * first; then the table is used like any array. A table of more than a few pages lies in a
 * temporary file (see spill.h), so that it takes no memory.
 */

#include <stddef.h>

#include "base/base.h"
#include "decoder/util/spill.h"

#define TABLE_PUSH_MAX (size_t)(1 << 16)

struct table {
	size_t item_size;
	size_t n;
	void *items; /* after table_finish() */

	struct spill spill;
	uint8_t *buffer; /* items that are not written yet; all items if they fit */
	size_t n_buffered;
	size_t mapped_size; /* of the mapping of the items; 0: they are in the buffer */
};

/* @spills, which is borrowed, says how much may be written; or NULL. */
void table_init(struct table *table, size_t item_size, struct spills *spills);
void table_deinit(struct table *table);

/* Add a copy of the item. Return: 0, or negative errno. */
_must_check_ int table_push(struct table *table, const void *item);

/* Add copies of @n items, together at most TABLE_PUSH_MAX bytes. Return: 0, or negative errno. */
_must_check_ int table_push_many(struct table *table, const void *items, size_t n);

/* Add @n items that are all zero. Return: 0, or negative errno. */
_must_check_ int table_push_zeros(struct table *table, size_t n);

/*
 * End adding: from now on items are read and written at table->items. Return: 0, or negative errno.
 */
_must_check_ int table_finish(struct table *table);

/*
 * Unmap the items of a table that lies in a file, because from now on they are read one by one, by
 * table_read(), and far from each other. table->items must not be used afterwards.
 */
void table_unmap(struct table *table);

/* Read @n items from item @i on, after table_finish(). Return: 0, or negative errno. */
_must_check_ int table_read(const struct table *table, size_t i, size_t n, void *ret_items);

/* Give the memory of the mapped items back to the system; they keep their contents. */
void table_evict(const struct table *table);
