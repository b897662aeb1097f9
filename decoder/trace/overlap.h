/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Overlap
 *
 * Snapshots of one ring repeat what was still in it since the last one. Where they are in the ring
 * tells nothing, for it may have been round any number of times; what tells is a PSB with its time.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

/*
 * How two pieces of PT of one buffer go together, of which @later was taken later.
 *
 * @ret_before: how many bytes of @later were written before the first byte of @earlier.
 * @ret_repeated: how many bytes from there on are also in @earlier: all up to its end.
 * @ret_padding: but for so many at its end, which are not of the stream: the recorder padded it
 * with zeros to a multiple of 8.
 *
 * They belong together if the last PSB+ of @earlier that has a TSC is in @later, and all that both
 * have around it is the same. In a stream without TSC (@has_tsc) any PSB will do, and the longest
 * overlap is taken.
 *
 * Return: whether they overlap.
 */
_must_check_ bool overlap_find(const uint8_t *earlier, size_t earlier_size, const uint8_t *later,
			       size_t later_size, bool has_tsc, size_t *ret_before,
			       size_t *ret_repeated, size_t *ret_padding);
