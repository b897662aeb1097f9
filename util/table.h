/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Table
 *
 * A long array of items of one size, of which only few are looked at at a time: it is made by
 * adding items, and then used like any array. What is more than a few pages lies in a temporary
 * file (see spill.h), so that memory does not grow with it.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/base.h"
#include "util/spill.h"

struct table {
	size_t item_size;
	size_t n;
	void *items; /* after table_finish() */

	struct spill spill;
	uint8_t *buffer; /* what is not written yet; or, if all fits in, the items */
	size_t n_buffered;
	size_t mapped_size; /* of the items; 0: they are the buffer */
};

void table_init(struct table *table, size_t item_size);
void table_deinit(struct table *table);

/* Add a copy of the item. Return: 0, or negative errno. */
_must_check_ int table_push(struct table *table, const void *item);

/* Add @n items that are all zero. Return: as above. */
_must_check_ int table_push_zeros(struct table *table, size_t n);

/* All were added: from now on they can be read and written at table->items. Return: as above. */
_must_check_ int table_finish(struct table *table);

/*
 * From now on items are read one by one, far from each other: table->items is no more, if they lie
 * in a file, and no memory is needed.
 */
void table_unmap(struct table *table);

/* Read item @i of a table that was finished. Return: 0, or negative errno. */
_must_check_ int table_read(const struct table *table, size_t i, void *ret_item);

/* Give back the memory that looking at items took; they stay what they are. */
void table_rest(const struct table *table);
