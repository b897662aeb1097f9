/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * AUX position
 *
 * Deduces where the writer of an overwritten AUX ring is. The kernel publishes an offset from 0 to
 * size-1, and only when the event stops. The offset goes back when the ring has gone round, and the
 * kernel says nowhere how often it did. These functions only look at memory and never call the
 * kernel.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

#define AUXPOS_NEWEST 4096u /* bytes. More than lies between two PSBs, so it does not come twice */
#define AUXPOS_PROBES 128u

struct auxpos {
	uint64_t size; /* bytes of the ring, a power of two */
	uint64_t head; /* offset in the ring that was published last */
	/* Running count of the bytes that were written, at least: the ring may have gone round
	 * unseen. It equals head modulo size. */
	uint64_t written;
	bool wrapped; /* the ring has gone round, so all of it is PT */
};

/* Samples of the memory of a ring, by which one sees later how far its writer has come since. */
struct auxpos_fingerprint {
	uint8_t newest[AUXPOS_NEWEST]; /* the bytes below the head */
	size_t n_newest;
	uint64_t probes[AUXPOS_PROBES]; /* words at equal distances, beginning at the head */
};

/* The last bytes of a ring. */
struct auxpos_end {
	uint8_t bytes[AUXPOS_NEWEST];
};

/* Copy the last bytes of a ring of @size bytes, which is at least as large as these. */
void auxpos_read_end(const uint8_t *ring, size_t size, struct auxpos_end *ret_end);

/*
 * Take note that the writer has published the offset @head.
 *
 * @end: the end of the ring before the event was stopped. Fresh pages are zeros, so other bytes
 *       behind the head show that the ring has gone round.
 */
void auxpos_move(struct auxpos *pos, uint64_t head, const struct auxpos_end *end);

/* Take samples of a ring whose writer was at @pos. */
void auxpos_take_fingerprint(const struct auxpos *pos, const uint8_t *ring,
			     struct auxpos_fingerprint *ret_fingerprint);

/* Return: how many of the oldest bytes at @pos are overwritten, if the writer has published the
 * offset @head since. The ring shows whether the writer has passed @pos. */
uint64_t auxpos_overwritten(const struct auxpos *pos, const struct auxpos_fingerprint *fingerprint,
			    const uint8_t *ring, uint64_t head);

/* Return: about the same number, deduced from what changed in the memory only, so that the writer
 * need not be stopped. */
uint64_t auxpos_estimate_overwritten(const struct auxpos *pos,
				     const struct auxpos_fingerprint *fingerprint,
				     const uint8_t *ring);
