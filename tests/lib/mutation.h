/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Mutation
 *
 * A perf.data with seeded damage: bits flipped, bytes moved, records swapped, dropped, repeated,
 * stamped with another time, the end cut off; in the PT and in the sideband.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "tests/lib/walk.h"

struct mutation {
	uint8_t *bytes; /* room for @size_max; the caller's */
	size_t size;
	size_t size_max;
	char what[160]; /* was done, for messages */
};

/*
 * Fill @m with the @size bytes at @bytes (whose records are @walk's), damaged in the way that @seed
 * picks.
 */
void mutation_make(struct mutation *m, const uint8_t *bytes, size_t size, const struct walk *walk,
		   uint64_t seed);
