/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Lost code
 *
 * Pages in which a program changed its code to something that is not known. A decoder has to treat
 * them as unknown from that time on; otherwise it would take the earlier bytes, most often those of
 * a file, for what ran.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "util/vec.h"

#define LOSTCODE_MAX 4096u /* ranges; if there are more, neighbours are joined */

/* Whole pages. */
struct lostcode_range {
	uint64_t start;
	uint64_t last; /* inclusive */
	uint64_t time; /* the bytes are unknown from this time on */
};

struct lostcode {
	VEC(struct lostcode_range) ranges; /* by address; no two touch each other */
};

void lostcode_deinit(struct lostcode *lost);

/* Add the @size bytes at @address, which are unknown from @time on. They do not wrap around the end
 * of the address space. Return: 0 or -ENOMEM. */
_must_check_ int lostcode_add(struct lostcode *lost, uint64_t address, uint64_t size,
			      uint64_t time);

/* Add all ranges of @other. Return: 0 or -ENOMEM. */
_must_check_ int lostcode_add_all(struct lostcode *lost, const struct lostcode *other);

/* Replace all ranges by one that has them all, to save memory. */
void lostcode_join(struct lostcode *lost);
