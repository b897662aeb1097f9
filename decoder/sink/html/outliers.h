/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Outliers
 *
 * The slowest executions of each function. As with the format latency, an execution is a call of
 * the function while no other call of it is open on the stack, and it counts if it was seen from
 * its beginning to its end.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "util/vec.h"

#define OUTLIERS_KEPT 5 /* of each function */

struct outlier {
	uint64_t t, duration;
	uint64_t n_insns;
	uint32_t track;
};

struct outliers_function {
	struct outlier slowest[OUTLIERS_KEPT]; /* the slowest first */
	size_t n;
};

struct outliers {
	bool has_time;                           /* else the one with more instructions is the
						  * slower; the caller sets it */
	VEC(struct outliers_function) functions; /* by their ids */
};

void outliers_deinit(struct outliers *outliers);

/* Return: those of the function, which may be none. */
const struct outliers_function *outliers_of(const struct outliers *outliers, uint32_t function);

/* Return: whether outliers_add() would keep it. */
bool outliers_wants(const struct outliers *outliers, uint32_t function, const struct outlier *o);

/* An execution has ended. Return: 0 or -ENOMEM. */
_must_check_ int outliers_add(struct outliers *outliers, uint32_t function,
			      const struct outlier *o);
