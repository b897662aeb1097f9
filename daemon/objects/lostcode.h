/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Lost code
 *
 * The pages in which a program changed its code, when nobody knows to what: a decoder would take
 * what was there before, in a file above all, for what ran.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "util/vec.h"

#define LOSTCODE_MAX 4096u /* ranges; more become one */

/* Whole pages. */
struct lostcode_range {
	uint64_t start;
	uint64_t last; /* inclusive */
	uint64_t time; /* since when */
};

struct lostcode {
	VEC(struct lostcode_range) ranges; /* by address; none touches the next one */
};

void lostcode_deinit(struct lostcode *lost);

/* The @size bytes at @address, which do not reach around the end, are not known from @time on.
 * Return: 0 or -ENOMEM. */
_must_check_ int lostcode_add(struct lostcode *lost, uint64_t address, uint64_t size,
			      uint64_t time);

/* Add what @other has. Return: 0 or -ENOMEM. */
_must_check_ int lostcode_add_all(struct lostcode *lost, const struct lostcode *other);

/* Make one range of all, which takes less memory and says less. */
void lostcode_join(struct lostcode *lost);
