/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Decoded pieces
 *
 * Checks that what was decoded of one thread is a part of what its truth log says. The decoded
 * instructions come in pieces: those of one stay on a CPU, cut where there was a gap. Each piece
 * has to be found in the log as a whole, after the piece before it. The search takes the first
 * place that fits, and so finds a place for every piece if there is one.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "util/vec.h"

struct piece {
	uint64_t t0;
	bool torn;    /* what ran before it on its CPU is not known */
	bool follows; /* nothing may be missing between it and the piece before */
	VEC(uint64_t) ips;
};

struct pieces {
	VEC(struct piece) list;

	/* The place of the search. */
	size_t at;        /* the piece to be found next */
	size_t n_matched; /* how many of its instructions have been found */
	uint32_t *fallback;
	bool between;     /* instructions of the log were skipped before it */
	uint64_t n_jumps; /* pieces that do not follow the piece before */
};

void pieces_deinit(struct pieces *pieces);

/* Begin a piece, at time @t0. A piece without instructions does not count. Return: 0 or -ENOMEM. */
_must_check_ int pieces_begin(struct pieces *pieces, uint64_t t0, bool torn);

/* Add an instruction to the last piece. Return: 0 or -ENOMEM. */
_must_check_ int pieces_add(struct pieces *pieces, uint64_t ip);

/* Join each piece that follows the piece before with it. Return: 0 or -ENOMEM. */
_must_check_ int pieces_join(struct pieces *pieces);

/*
 * Return: whether the log may be skipped up to its next instruction at @ret_ip, because no piece
 *         can be found before that.
 */
bool pieces_seek(const struct pieces *pieces, uint64_t *ret_ip);

/* Search in the next @n instructions of the log; @ips need not be aligned. Return: 0 or -ENOMEM. */
_must_check_ int pieces_show(struct pieces *pieces, const uint8_t *ips, size_t n);

/* Return: whether all pieces have been found. */
bool pieces_found(const struct pieces *pieces);
