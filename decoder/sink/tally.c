/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/sink/tally.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void tally_deinit(struct tally *tally)
{
	vec_deinit_each(&tally->blocks, block, free(block->turns));
	vec_deinit(&tally->threads);
	vec_deinit(&tally->symbols);
	map_deinit(&tally->thread_index);
}

/* --- sums ------------------------------------------------------------------------------------- */

static size_t hash_of(const struct ptd_block *block)
{
	return (size_t)((uintptr_t)block * UINT64_C(0x9e3779b97f4a7c15) >> (64 - TALLY_INDEX_BITS));
}

/*
 * A hot block is summed without a look at it: the batch, the index and the sums lie in the CPU's
 * caches, but all blocks that ran do not.
 */
size_t tally_sum(const struct ptd_run *runs, size_t n_runs, struct tally_index *index,
		 struct tally_sum *ret_sums)
{
	size_t n = 0;

	for (size_t i = 0; i < n_runs; i++) {
		const struct ptd_run *run = &runs[i];
		uint32_t *slot = &index->sums[hash_of(run->block)];
		struct tally_sum *sum = &ret_sums[*slot];

		if (*slot < n && sum->block == run->block && sum->first == run->first &&
		    sum->n == run->n) {
			sum->count++;
			continue;
		}
		*slot = (uint32_t)n;
		ret_sums[n++] = (struct tally_sum){ run->block, run->first, run->n, 1 };
	}
	return n;
}

/* --- counting --------------------------------------------------------------------------------- */

static int get_thread(struct tally *tally, uint32_t pid, uint32_t tid,
		      struct tally_thread **ret_thread)
{
	const uint64_t key = (uint64_t)pid << 32 | tid;

	*ret_thread =
	    map_item(&tally->thread_index, key, &tally->threads, { .pid = pid, .tid = tid });
	return *ret_thread ? 0 : -ENOMEM;
}

static int add_block(struct tally *tally, const struct ptd_block *block)
{
	struct tally_block *b = vec_at(&tally->blocks, block->id, {});

	if (!b)
		return -ENOMEM;
	b->block = block;
	return 0;
}

static int add_part(struct tally_block *b, const struct tally_sum *sum)
{
	if (!b->turns) {
		b->turns = calloc(b->block->n_insns + (size_t)1, sizeof(*b->turns));
		if (!b->turns)
			return -ENOMEM;
	}
	b->turns[sum->first] += sum->count;
	b->turns[sum->first + sum->n] -= sum->count;
	return 0;
}

static int add_sum(struct tally *tally, const struct tally_sum *sum)
{
	const struct ptd_block *block = sum->block;
	struct tally_block *b;

	if (block->id >= tally->blocks.n || !tally->blocks.items[block->id].block) {
		const int r = add_block(tally, block);

		if (r < 0)
			return r;
	}
	b = &tally->blocks.items[block->id];
	if (sum->n != block->n_insns)
		return add_part(b, sum);
	b->n_whole += sum->count;
	return 0;
}

static int add_sums(struct tally *tally, const uint8_t *sums, size_t n_sums, uint64_t *ret_n)
{
	uint64_t n = 0;

	for (size_t i = 0; i < n_sums; i++) {
		struct tally_sum sum;
		int r;

		memcpy(&sum, sums + i * sizeof(sum), sizeof(sum));
		r = add_sum(tally, &sum);
		if (r < 0)
			return r;
		n += (uint64_t)sum.n * sum.count;
	}
	*ret_n = n;
	return 0;
}

int tally_add(struct tally *tally, const struct ptd_batch *batch, const void *sums, size_t n_sums)
{
	const struct ptd_slice *slice = batch->slice;
	struct tally_thread *thread;
	uint64_t n = 0;
	int r;

	/* The array may move when it grows; the names stay where they are. */
	for (size_t i = tally->symbols.n; i < batch->n_symbols; i++) {
		r = vec_push(&tally->symbols, batch->symbols[i]->name);
		if (r < 0)
			return r;
	}
	r = add_sums(tally, sums, n_sums, &n);
	if (r < 0)
		return r;
	r = get_thread(tally, slice->pid, slice->tid, &thread);
	if (r < 0)
		return r;
	thread->n_insns += n;
	tally->n_insns += n;
	if (slice->comm && slice->comm[0]) {
		strncpy(thread->comm, slice->comm, sizeof(thread->comm) - 1);
		thread->comm[sizeof(thread->comm) - 1] = '\0';
	}
	return 0;
}

/* --- the parts -------------------------------------------------------------------------------- */

static int by_size(const void *pa, const void *pb)
{
	const struct tally_row *a = pa, *b = pb;

	return COMPARE(b->n_insns, a->n_insns)
		       ?: COMPARE(a->pid, b->pid)
		       ?: COMPARE(a->tid, b->tid)
		       ?: strcmp(a->name ?: "", b->name ?: "");
}

/* Drop the rows without instructions, and sort the others. */
static void tidy(struct tally_rows *rows)
{
	size_t n = 0;

	for (size_t i = 0; i < rows->n; i++)
		if (rows->items[i].n_insns > 0)
			rows->items[n++] = rows->items[i];
	rows->n = n;
	vec_sort(rows, by_size);
}

/* Add @n to the row of @key, which is made if it does not exist. */
static int add_to(struct tally_rows *rows, struct map *index, uint64_t key, uint64_t n,
		  struct tally_row **ret_row)
{
	struct tally_row *row = map_item(index, key, rows, {});

	if (!row)
		return -ENOMEM;
	row->n_insns += n;
	*ret_row = row;
	return 0;
}

/* Count the instructions of the thread to it, or to its process. */
static int add_thread(const struct tally_thread *t, bool by_process, struct tally_rows *rows,
		      struct map *index)
{
	const uint64_t key = (uint64_t)t->pid << 32 | (by_process ? 0 : t->tid);
	struct tally_row *row;

	if (add_to(rows, index, key, t->n_insns, &row) < 0)
		return -ENOMEM;
	row->pid = t->pid;
	row->tid = by_process ? 0 : t->tid;
	/* The process is called as its first thread, or as any thread until that one is seen. */
	if (!row->name || t->tid == t->pid)
		row->name = t->comm;
	return 0;
}

/* Count each instruction of @block to its object or, if @by_symbol, to its symbol. */
static int add_insns(const struct tally *tally, const struct tally_block *b, bool by_symbol,
		     struct tally_rows *rows, struct map *index)
{
	const struct ptd_block *block = b->block;
	struct tally_row *row = NULL;
	uint64_t n = b->n_whole, last_key = 0;

	for (size_t i = 0; i < block->n_insns; i++) {
		const uint32_t symbol = block->insns[i].symbol;
		const uint64_t object_key = (uint64_t)block->object->id << 32;
		const uint64_t key = by_symbol ? object_key | symbol : object_key;

		n += b->turns ? (uint64_t)b->turns[i] : 0;
		if (n == 0)
			continue;
		/* Nearly all instructions of a block are of one row. */
		if (row && key == last_key) {
			row->n_insns += n;
			continue;
		}
		if (add_to(rows, index, key, n, &row) < 0)
			return -ENOMEM;
		last_key = key;
		if (!row->object || block->address < row->first)
			row->first = block->address;
		if (!row->object || block->address + (block->size - 1u) > row->last)
			row->last = block->address + (block->size - 1u);
		row->object = block->object->name;
		if (!by_symbol)
			row->name = block->object->name;
		else if (symbol != PTD_NO_SYMBOL && symbol < tally->symbols.n)
			row->name = tally->symbols.items[symbol];
	}
	return 0;
}

int tally_list(const struct tally *tally, enum tally_part part, struct tally_rows *ret_rows)
{
	const bool of_threads = part == TALLY_PROCESSES || part == TALLY_THREADS;
	_cleanup_(map_deinit) struct map index = {};
	struct tally_rows rows = {};
	int r = 0;

	for (size_t i = 0; of_threads && i < tally->threads.n && r == 0; i++)
		r = add_thread(&tally->threads.items[i], part == TALLY_PROCESSES, &rows, &index);
	for (size_t i = 0; !of_threads && i < tally->blocks.n && r == 0; i++)
		if (tally->blocks.items[i].block)
			r = add_insns(tally, &tally->blocks.items[i], part == TALLY_SYMBOLS, &rows,
				      &index);
	if (r < 0) {
		vec_deinit(&rows);
		return r;
	}
	tidy(&rows);
	*ret_rows = rows;
	return 0;
}

uint64_t tally_n_claimed(const struct tally *tally)
{
	uint64_t n_claimed = 0;

	for (size_t i = 0; i < tally->blocks.n; i++) {
		const struct tally_block *b = &tally->blocks.items[i];
		uint64_t n = b->n_whole;

		for (size_t k = 0;
		     b->block && b->block->object->is_claimed && k < b->block->n_insns; k++) {
			n += b->turns ? (uint64_t)b->turns[k] : 0;
			n_claimed += n;
		}
	}
	return n_claimed;
}
