/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Mutation
 *
 * A perf.data or a bare PT stream with seeded damage: bits flipped, bytes moved, records swapped,
 * dropped, repeated, stamped with another time, the end cut off, parts of another input put in; in
 * the PT and in the sideband.
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
	VEC(struct mutation_area) records; /* but those with PT behind them */
};

struct mutation {
	uint8_t *bytes; /* room for @size_max; the caller's */
	size_t size;
	size_t size_max;
	char what[160]; /* was done, for messages */
};

/*
 * Look for the parts of the @size bytes at @bytes: a perf.data, or (@is_bare) nothing but PT.
 *
 * Return: 0; -EBADMSG if it is no perf.data; -ENOMEM.
 */
_must_check_ int mutation_input_init(struct mutation_input *input, const uint8_t *bytes,
				     size_t size, bool is_bare);
void mutation_input_deinit(struct mutation_input *input);

/*
 * Fill @m with @input, damaged in the way that @seed picks; @other lends parts of itself, and may
 * be the same.
 */
void mutation_make(struct mutation *m, const struct mutation_input *input,
		   const struct mutation_input *other, uint64_t seed);
