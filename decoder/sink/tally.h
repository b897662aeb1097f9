/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Tally
 *
 * Counts the instructions of a stream by thread, process, object and symbol. Whatever the stream
 * holds, the parts of each add up to the whole.
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
	char comm[16]; /* the last one seen; "" if there was none */
};

struct tally {
	uint64_t n_insns;
	struct map thread_index; /* pid and tid → index in threads */
	VEC(struct tally_thread) threads;
	VEC(struct tally_block {
		const struct ptd_block *block; /* NULL if no run was of it; borrowed */
		/*
		 * How many runs begin at each instruction, less those that ended before it: the sum
		 * up to an instruction is how often that was executed. One more than instructions.
		 */
		uint64_t *turns;
	})
	blocks;                    /* by block id */
	VEC(const char *) symbols; /* names by symbol id; borrowed */
};

/* One part, with what it is called. */
struct tally_row {
	uint64_t n_insns;
	uint32_t pid, tid;  /* of threads and processes */
	const char *name;   /* comm, object or symbol; NULL: a place without a symbol */
	const char *object; /* of a symbol */
};

struct tally_rows {
	struct tally_row *items;
	size_t n;
	size_t n_capacity;
};

void tally_deinit(struct tally *tally);

/* Count a batch. Return: 0 or -ENOMEM. */
_must_check_ int tally_add(struct tally *tally, const struct ptd_batch *batch);

/*
 * The parts, the largest first; @ret_rows is emptied with vec_deinit(), its names are @tally's or
 * the stream's.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int tally_threads(const struct tally *tally, struct tally_rows *ret_rows);
_must_check_ int tally_processes(const struct tally *tally, struct tally_rows *ret_rows);
_must_check_ int tally_objects(const struct tally *tally, struct tally_rows *ret_rows);
_must_check_ int tally_symbols(const struct tally *tally, struct tally_rows *ret_rows);
