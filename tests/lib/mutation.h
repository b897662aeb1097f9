/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Mutation
 *
 * Damages a perf.data file or a bare PT stream in a way that a seed picks: flips bits, moves bytes,
 * swaps, drops, repeats or restamps records, cuts the end off, or inserts parts of another input,
 * in the PT and in the sideband.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "util/vec.h"

struct mutation_area {
	size_t offset, size;
};

/* What is to be damaged. */
struct mutation_input {
	const uint8_t *bytes; /* the caller's */
	size_t size;
	bool is_bare;
	VEC(struct mutation_area) pt;
	VEC(struct mutation_area) records; /* without those that PT follows */
};

struct mutation {
	uint8_t *bytes; /* room for @size_max; the caller's */
	size_t size;
	size_t size_max;
	char what[160]; /* what was done, for messages */
};

/*
 * Find the parts of the @size bytes at @bytes: a perf.data file, or, if @is_bare, a bare PT stream.
 *
 * Return: 0; -EBADMSG if it is no perf.data; -ENOMEM.
 */
_must_check_ int mutation_input_init(struct mutation_input *input, const uint8_t *bytes,
				     size_t size, bool is_bare);
void mutation_input_deinit(struct mutation_input *input);

/*
 * Fill @m with a copy of @input that is damaged in the way that @seed picks. Parts to insert come
 * from @other, which may be the same input.
 */
void mutation_make(struct mutation *m, const struct mutation_input *input,
		   const struct mutation_input *other, uint64_t seed);
