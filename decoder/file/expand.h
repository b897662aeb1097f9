/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Expand
 *
 * Expands the records in compressed records (perf record -z). Each data file has one zstd stream;
 * each compressed record has the next part of it. A record in the stream may begin in one part and
 * end in another, so the whole stream is expanded before its records are read.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "base/cursor.h"
#include "decoder/util/spill.h"
#include "util/vec.h"

/*
 * From n compressed bytes, at most EXPAND_MIN + n * EXPAND_RATIO_MAX bytes are expanded. Records
 * shrink to about a tenth, but zstd can shrink zeros to a thirty-thousandth, so that a small file
 * could fill the disk.
 */
#define EXPAND_MIN       (UINT64_C(16) << 20)
#define EXPAND_RATIO_MAX 256

/* Where a part of the expanded bytes came from. */
struct expand_part {
	uint64_t start;       /* in the expanded bytes */
	uint64_t file_offset; /* of the compressed record */
};

/* All zero: nothing was compressed so far. */
struct expand {
	void *stream; /* of zstd; NULL: nothing was compressed so far */
	uint8_t *buffer;
	uint64_t n_in;
	struct spill out;
	VEC(struct expand_part) parts;
};

void expand_deinit(struct expand *expand);

/*
 * Expand the compressed bytes of the record at @file_offset.
 *
 * Return: 0; -EBADMSG if the bytes do not continue the zstd stream; -EFBIG if the limit is reached;
 *         or another negative errno.
 */
_must_check_ int expand_add(struct expand *expand, struct cursor bytes, uint64_t file_offset);

static inline bool expand_used(const struct expand *expand)
{
	return expand->stream;
}

/* Return: where all expanded bytes are; the caller owns the descriptor if it says so. */
struct spillfile expand_finish(struct expand *expand);

/* Return: the file offset of the compressed record that has the expanded byte at @position. */
uint64_t expand_file_offset(const struct expand *expand, uint64_t position);
