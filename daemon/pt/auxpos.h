/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Auxpos
 *
 * Where the writer of an overwritten AUX ring is. The kernel publishes an offset, 0 to size-1, only
 * when the event stops; it goes back when the ring has gone round, and nothing else says so. What
 * can be deduced from it is deduced here; nothing in here touches the kernel.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

#define AUXPOS_NEWEST 4096u /* more than lies between two PSBs: it does not come twice */
#define AUXPOS_PROBES 128u

struct auxpos {
	uint64_t size; /* of the ring, a power of two */
	uint64_t head; /* offset, as of the last move */
	/* Bytes so far, at least: more if it went round unseen; head modulo size. */
	uint64_t written;
	bool wrapped; /* it has gone round, so all of the ring is PT */
};

/* What was in the ring at a freeze, to see later how far its writer has come since. */
struct auxpos_print {
	uint8_t newest[AUXPOS_NEWEST]; /* the bytes below the head */
	size_t n_newest;
	uint64_t probes[AUXPOS_PROBES]; /* at equal distances from the head on */
};

/* The last bytes of a ring. */
struct auxpos_end {
	uint8_t bytes[AUXPOS_NEWEST];
};

/* Look at the end of a ring of @size bytes, of which it has at least as many. */
void auxpos_look(const uint8_t *ring, size_t size, struct auxpos_end *ret_end);

/* The writer is at the offset @head now. @end: the ring's, before it was stopped to tell that:
 * fresh pages are zeros, so what is not zero behind the head says that it has gone round. */
void auxpos_move(struct auxpos *pos, uint64_t head, const struct auxpos_end *end);

/* Remember the ring as it is at @pos. */
void auxpos_print(const struct auxpos *pos, const uint8_t *ring, struct auxpos_print *ret_print);

/* How many of the oldest bytes at @pos are gone: the writer has come to @head since, and may have
 * lapped @pos, as the ring will show. */
uint64_t auxpos_gone(const struct auxpos *pos, const struct auxpos_print *print,
		     const uint8_t *ring, uint64_t head);

/* About the same without knowing the head, so without stopping the writer: by what has changed. */
uint64_t auxpos_glimpse(const struct auxpos *pos, const struct auxpos_print *print,
			const uint8_t *ring);
