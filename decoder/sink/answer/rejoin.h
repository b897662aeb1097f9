/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Rejoining
 *
 * Finds out where two paths that differ go on alike, and how much of them is different. Paths are
 * alike from where the next REJOIN_STEPS steps are the same, or all steps up to the end of both. Of
 * several such places, the one counts that has the fewest steps before it in both together.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/sink/answer/path.h"

#define REJOIN_STEPS 16

/* The steps of one path, as far as they are known. */
struct rejoin_path {
	const struct path_step *steps;
	size_t n;
};

struct rejoin {
	bool is_found;           /* the paths go on alike behind their first difference: */
	uint64_t n_insns[2];     /* instructions of each before that */
	size_t n_more;           /* differences behind that, as far as the steps are known */
	uint64_t n_different[2]; /* instructions of all differences */
	uint64_t n_compared[2];  /* since the first difference, up to where nothing is known */
	bool is_whole;           /* both paths were compared up to their ends */
};

/*
 * Compare two paths, whose first difference is at step @first of both.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int rejoin_find(const struct rejoin_path paths[static 2], size_t first,
			     struct rejoin *ret_rejoin);
