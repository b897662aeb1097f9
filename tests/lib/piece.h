/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Piece
 *
 * Is what was decoded of one thread a part of what it did? The decoded instructions come in pieces:
 * those of one stay on a CPU, cut where there was a gap. Each has to be found, as a whole, in the
 * log, behind the piece before it; the search takes the first place there is, so that it finds one
 * for all if there is one.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/util/vec.h"

struct piece {
	uint64_t t0;
	VEC(uint64_t) ips;
};

struct pieces {
	VEC(struct piece) list;

	/* Where the search stands. */
	size_t at;        /* the piece that is looked for */
	size_t n_matched; /* of its instructions */
	uint32_t *fallback;
	bool between;      /* instructions of the log were left out before it */
	uint64_t n_logged; /* instructions of the log seen */
	uint64_t n_jumps;  /* pieces that do not follow the one before */
};

void pieces_deinit(struct pieces *pieces);

/* Begin a piece; pieces without instructions do not count. Return: 0 or -ENOMEM. */
_must_check_ int pieces_begin(struct pieces *pieces, uint64_t t0);
_must_check_ int pieces_add(struct pieces *pieces, uint64_t ip);

/*
 * Make one piece of those that begin after @from: nothing may be missing between them. Return: how many they were, or -ENOMEM.
 */
_must_check_ int pieces_join(struct pieces *pieces, uint64_t from);

/* Show the next instruction of the log. Return: 0 or -ENOMEM. */
_must_check_ int pieces_show(struct pieces *pieces, uint64_t ip);

/* Were all found? */
bool pieces_found(const struct pieces *pieces);
