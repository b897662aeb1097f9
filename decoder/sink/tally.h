/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Tally
 *
 * Counts the instructions of a stream by thread, process, object and symbol. Each of these four
 * partitions adds up to all instructions of the stream.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "ptd/record.h"
#include "util/map.h"
#include "util/vec.h"

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
		/*
		 * For each instruction: how many runs begin at it, less how many ended just before
		 * it. The sum up to an instruction is how often that instruction was executed.
		 * There is one element more than there are instructions. Owned.
		 */
		uint64_t *turns;
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
};

struct tally_rows {
	struct tally_row *items;
	size_t n;
	size_t n_capacity;
};

void tally_deinit(struct tally *tally);

/* Count the instructions of a batch. Return: 0 or -ENOMEM. */
_must_check_ int tally_add(struct tally *tally, const struct ptd_batch *batch);

/*
 * List the parts, the largest first. The caller frees @ret_rows with vec_deinit(). Its names belong
 * to @tally or to the stream.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int tally_threads(const struct tally *tally, struct tally_rows *ret_rows);
_must_check_ int tally_processes(const struct tally *tally, struct tally_rows *ret_rows);
_must_check_ int tally_objects(const struct tally *tally, struct tally_rows *ret_rows);
_must_check_ int tally_symbols(const struct tally *tally, struct tally_rows *ret_rows);
