/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Expand
 *
 * The records in compressed records (perf record -z): one zstd stream for each data file, of which
 * each compressed record holds the next part. The records in it may be cut anywhere, so it is
 * expanded as a whole before they are read.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "base/cursor.h"
#include "util/mapfile.h"
#include "util/spill.h"
#include "util/vec.h"

/*
 * No more is expanded from n compressed bytes than EXPAND_MIN + n * EXPAND_RATIO_MAX. Records, full
 * of addresses and times, shrink to a tenth or so; zstd can shrink zeros to a thirty-thousandth.
 */
#define EXPAND_MIN       (UINT64_C(16) << 20)
#define EXPAND_RATIO_MAX 256

/* Where a part of the expanded bytes came from. */
struct expand_part {
	uint64_t start;       /* in the expanded bytes */
	uint64_t file_offset; /* of the compressed record */
};

/* All zero is one of a file that has none. */
struct expand {
	void *stream; /* zstd's; NULL: nothing was compressed so far */
	uint8_t *buffer;
	uint64_t n_in;
	struct spill out;
	VEC(struct expand_part) parts;
};

void expand_deinit(struct expand *expand);

/*
 * Expand the compressed bytes of the record at @file_offset.
 *
 * Return: 0; -EBADMSG if they are none; -EFBIG if they would become too much; or negative errno.
 */
_must_check_ int expand_add(struct expand *expand, struct cursor bytes, uint64_t file_offset);

static inline bool expand_used(const struct expand *expand)
{
	return expand->stream;
}

/*
 * Map all that was expanded.
 *
 * Return: 0, and the caller owns @ret_map; or negative errno.
 */
_must_check_ int expand_finish(struct expand *expand, struct mapfile *ret_map);

/* Return: the offset in the file of the compressed record that held the byte at @position. */
uint64_t expand_file_offset(const struct expand *expand, uint64_t position);
