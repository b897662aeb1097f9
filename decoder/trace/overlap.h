/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Overlap
 *
 * Two snapshots of one ring have bytes in common if the ring was not overwritten between them. The
 * positions in the ring do not show that, because the ring may have been overwritten any number of
 * times. A PSB and the time that follows it do.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"

struct window;

/* How few bytes a window may hold. */
#define OVERLAP_WINDOW_MIN 32

/*
 * Find which bytes of one AUX buffer are both in @earlier and in @later, a piece that was recorded
 * later. The windows, which hold OVERLAP_WINDOW_MIN bytes or more, are moved.
 *
 * @ret_before: so many bytes of @later were written before the first byte of @earlier
 * @ret_repeated: so many bytes of @later, after those, are also in @earlier, up to its end
 * @ret_padding: so many bytes at the end of @earlier are not PT, and are not among the repeated
 * bytes: the recorder padded the piece with zeros to a multiple of 8 bytes
 *
 * The pieces overlap if the last PSB+ of @earlier that has a TSC is also in @later, and all bytes
 * that both have before and after it are equal. If the stream has no TSC (@has_tsc is false), any
 * PSB will do, and the longest overlap is taken.
 *
 * Return: whether the pieces overlap. If they cannot be read, false, and a window has the error.
 */
_must_check_ bool overlap_find(struct window *earlier, struct window *later, bool has_tsc,
			       uint64_t *ret_before, uint64_t *ret_repeated, uint64_t *ret_padding);
