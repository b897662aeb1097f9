/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/util/table.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#define BUFFER_SIZE TABLE_PUSH_MAX

void table_init(struct table *table, size_t item_size, struct spills *spills)
{
	*table = (struct table){ .item_size = item_size, .spill.spills = spills };
}

void table_deinit(struct table *table)
{
	table_unmap(table);
	free(table->buffer);
	spill_deinit(&table->spill);
	table_init(table, table->item_size, table->spill.spills);
}

static int flush_buffer(struct table *table)
{
	const int r = spill_write(&table->spill, table->buffer, table->n_buffered);

	table->n_buffered = 0;
	return r;
}

int table_push(struct table *table, const void *item)
{
	return table_push_many(table, item, 1);
}

int table_push_many(struct table *table, const void *items, size_t n)
{
	const size_t size = n * table->item_size;
	int r;

	assert(n <= TABLE_PUSH_MAX / table->item_size);
	if (!table->buffer) {
		table->buffer = malloc(BUFFER_SIZE);
		if (!table->buffer)
			return -ENOMEM;
	}
	if (BUFFER_SIZE - table->n_buffered < size) {
		r = flush_buffer(table);
		if (r < 0)
			return r;
	}
	if (size > 0)
		memcpy(table->buffer + table->n_buffered, items, size);
	table->n_buffered += size;
	table->n += n;
	return 0;
}

int table_push_zeros(struct table *table, size_t n)
{
	_cleanup_(freep) void *zeros = calloc(1, table->item_size);
	int r = zeros ? 0 : -ENOMEM;

	for (size_t i = 0; i < n && r == 0; i++)
		r = table_push(table, zeros);
	return r;
}

int table_finish(struct table *table)
{
	int r;

	if (table->spill.size == 0) {
		table->items = table->buffer;
		return 0;
	}
	r = flush_buffer(table);
	if (r < 0)
		return r;
	table->mapped_size = table->spill.size;
	free(table->buffer);
	table->buffer = NULL;
	return spill_share(&table->spill, &table->items);
}

void table_unmap(struct table *table)
{
	if (!table->mapped_size)
		return;
	(void)munmap(table->items, table->mapped_size);
	table->items = NULL;
	table->mapped_size = 0;
}

int table_read(const struct table *table, size_t i, size_t n, void *ret_items)
{
	const size_t size = table->item_size, n_bytes = n * size;
	ssize_t n_read;

	if (table->items) {
		memcpy(ret_items, (const uint8_t *)table->items + i * size, n_bytes);
		return 0;
	}
	n_read = pread(table->spill.fd, ret_items, n_bytes, (off_t)(table->spill.start + i * size));
	return n_read < 0 ? -errno : (size_t)n_read == n_bytes ? 0 : -EIO;
}

void table_evict(const struct table *table)
{
	if (table->mapped_size)
		(void)madvise(table->items, table->mapped_size, MADV_DONTNEED);
}
