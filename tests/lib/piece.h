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
#include "util/vec.h"

struct piece {
	uint64_t t0;
	bool torn;    /* what came before it on its CPU is not known */
	bool follows; /* the one before: nothing may be missing between them */
	VEC(uint64_t) ips;
};

struct pieces {
	VEC(struct piece) list;

	/* Where the search stands. */
	size_t at;        /* the piece that is looked for */
	size_t n_matched; /* of its instructions */
	uint32_t *fallback;
	bool between;     /* instructions of the log were left out before it */
	uint64_t n_jumps; /* pieces that do not follow the one before */
};

void pieces_deinit(struct pieces *pieces);

/* Begin a piece; pieces without instructions do not count. Return: 0 or -ENOMEM. */
_must_check_ int pieces_begin(struct pieces *pieces, uint64_t t0, bool torn);
_must_check_ int pieces_add(struct pieces *pieces, uint64_t ip);

/* Join those that follow the one before with it. Return: 0 or -ENOMEM. */
_must_check_ int pieces_join(struct pieces *pieces);

/* Return: whether nothing is lost if instructions before the next one at @ret_ip are not shown. */
bool pieces_seek(const struct pieces *pieces, uint64_t *ret_ip);

/* Show the next @n instructions of the log; @ips need not be aligned. Return: 0 or -ENOMEM. */
_must_check_ int pieces_show(struct pieces *pieces, const uint8_t *ips, size_t n);

/* Were all found? */
bool pieces_found(const struct pieces *pieces);
