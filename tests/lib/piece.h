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
#include <stdio.h>

#include "base/base.h"
#include "util/vec.h"

/* How many instructions are shown on each side of a difference. */
#define PIECE_CONTEXT 8

/* A stay on a CPU begins at instruction @at of a piece. */
struct piece_seam {
	size_t at;
	uint64_t t0;
	uint32_t cpu;
};

struct piece {
	uint64_t t0;
	bool torn;    /* what ran before it on its CPU is not known */
	bool follows; /* nothing may be missing between it and the piece before */
	VEC(uint64_t) ips;
	VEC(struct piece_seam) seams; /* of itself, and of the pieces that were joined to it */
};

/* The place of the log that has the longest beginning of a piece. */
struct piece_nearest {
	size_t n;      /* instructions that are equal there */
	uint64_t from; /* number of the instruction of the log that is another one */
	uint64_t logged[PIECE_CONTEXT]; /* it, and those after it */
	size_t n_logged;
};

struct pieces {
	VEC(struct piece) list;

	/* The place of the search. */
	size_t at;        /* the piece to be found next */
	size_t n_matched; /* how many of its instructions have been found */
	uint32_t *fallback;
	bool between;                 /* instructions of the log were skipped before it */
	uint64_t n_jumps;             /* pieces that do not follow the piece before */
	uint64_t n_shown;             /* instructions of the log that the search has seen */
	struct piece_nearest nearest; /* of the piece to be found next */
};

void pieces_deinit(struct pieces *pieces);

/* Begin a piece, at time @t0 on @cpu. A piece without instructions does not count. Return: 0 or
 * -ENOMEM. */
_must_check_ int pieces_begin(struct pieces *pieces, uint64_t t0, uint32_t cpu, bool torn);

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

/* Print where the piece that was not found first differs from the log's place that is nearest to
 * it, with the instructions before and after the difference. */
void pieces_print_nearest(const struct pieces *pieces, FILE *f);
