/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Tally
 *
 * Counts the instructions of a stream by thread, process, object and symbol. Each of these four
 * partitions adds up to all instructions of the stream.
 *
 * Counting has two steps. The first one sums the runs of a batch that are equal, and looks at
 * nothing but these runs; several threads may do it for several batches at the same time. The
 * second one adds the sums to the tally.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "ptd/record.h"
#include "util/map.h"
#include "util/vec.h"

/* A sum: the instructions @first to @first + @n - 1 of @block were executed @count times. */
struct tally_sum {
	const struct ptd_block *block; /* borrowed */
	uint16_t first;
	uint16_t n;
	uint32_t count;
};

#define TALLY_INDEX_BITS 11

/*
 * What finds the sum of a run quickly: for each hash of a block, the index of the sum that was made
 * last. All bytes may be 0 at first, or left from other runs.
 */
struct tally_index {
	uint32_t sums[1 << TALLY_INDEX_BITS];
};

struct tally_thread {
	uint32_t pid, tid;
	uint64_t n_insns;
	char comm[16]; /* the last name that the thread had; "" if none is known */
};

struct tally {
	uint64_t n_insns;
	struct map thread_index; /* pid and tid → index in threads */
	VEC(struct tally_thread) threads;
	VEC(struct tally_block {
		const struct ptd_block *block; /* NULL if no run was of this block; borrowed */
		uint64_t n_whole;              /* runs of the whole block */
		/*
		 * Of runs of a part of the block, for each instruction: how many of them begin at
		 * it, less how many ended just before it. The sum up to an instruction is how often
		 * these runs executed it. There is one element more than there are instructions.
		 * Owned; NULL if there was no such run.
		 */
		int64_t *turns;
	})
	blocks;                    /* by block id */
	VEC(const char *) symbols; /* names by symbol id; borrowed */
};

/* One part of the instructions, and its name. */
struct tally_row {
	uint64_t n_insns;
	uint32_t pid, tid;  /* of threads and processes */
	const char *name;   /* comm, object or symbol; NULL: code without a symbol */
	const char *object; /* to which a symbol belongs */
	/* Of an object or symbol: of the blocks that were executed, the first byte and the last. */
	uint64_t first, last;
};

enum tally_part {
	TALLY_PROCESSES,
	TALLY_THREADS,
	TALLY_OBJECTS,
	TALLY_SYMBOLS,
};

struct tally_rows {
	struct tally_row *items;
	size_t n;
	size_t n_capacity;
};

void tally_deinit(struct tally *tally);

/*
 * Sum @n_runs runs, which must be less than 2^32. @ret_sums has room for as many sums, and @index
 * is used meanwhile. Which sums are made, and in which order, depends only on the runs.
 *
 * Return: the number of sums.
 */
size_t tally_sum(const struct ptd_run *runs, size_t n_runs, struct tally_index *index,
		 struct tally_sum *ret_sums);

/*
 * Count the instructions of @batch. The bytes @sums, which need not be aligned, are @n_sums sums of
 * its runs.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int tally_add(struct tally *tally, const struct ptd_batch *batch, const void *sums,
			   size_t n_sums);

/*
 * List the parts, the largest first. The caller frees @ret_rows with vec_deinit(). Its names belong
 * to @tally or to the stream.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int tally_list(const struct tally *tally, enum tally_part part,
			    struct tally_rows *ret_rows);

/* Return: how many instructions were executed whose bytes only a jitdump states. */
uint64_t tally_n_claimed(const struct tally *tally);
