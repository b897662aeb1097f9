/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Digest
 *
 * A hash of all that a decoder gives out: slices, runs with the ids of blocks, objects and symbols,
 * marks, and the statistics. Where the stream is cut into batches does not matter.
 */

#include <stdint.h>

#include "base/base.h"
#include "decoder/stream/ahead.h"

struct ptd_options;

struct digest {
	uint64_t hash;
	uint64_t n_items; /* runs and marks */
	int r;            /* what decoding came to: 0, or negative errno */
	struct ahead_counts parts;
};

/* Decode with @options and @n_threads threads, which cut spans behind @cut_size bytes. */
struct digest digest_of(const struct ptd_options *options, size_t n_threads, uint64_t cut_size);
