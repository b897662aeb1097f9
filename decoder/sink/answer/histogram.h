/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Histogram
 *
 * Counts values, so that their quantiles can be found later. Its memory depends on the range of the
 * values and not on their number: each power of two has 32 buckets. Values below 64 have a bucket
 * of their own; a quantile of larger ones differs from the true value by at most 1/64 of it.
 */

#include <stdint.h>

#include "base/base.h"

#define HISTOGRAM_OCTAVE_BITS 5
#define HISTOGRAM_OCTAVE      (1u << HISTOGRAM_OCTAVE_BITS)
#define HISTOGRAM_BUCKETS     (60u * HISTOGRAM_OCTAVE)

struct histogram {
	uint64_t n;        /* values */
	uint64_t min, max; /* exact; meaningless without a value */

	/* The buckets from @first on; there are none before the first value. Owned. */
	uint32_t *counts;
	uint16_t first;
	uint16_t n_counts;
};

/* An empty histogram has only zeros. */
void histogram_deinit(struct histogram *histogram);

/* Return: the number of the bucket in which @value is counted, less than HISTOGRAM_BUCKETS. */
static inline unsigned int histogram_bucket(uint64_t value)
{
	const unsigned int log2 = 63u - (unsigned int)__builtin_clzll(value | HISTOGRAM_OCTAVE);
	const unsigned int shift = log2 - HISTOGRAM_OCTAVE_BITS;

	return shift * HISTOGRAM_OCTAVE + (unsigned int)(value >> shift);
}

/* For histogram_add(): make room for the bucket. Return: 0 or -ENOMEM. */
_must_check_ int histogram_grow(struct histogram *histogram, unsigned int bucket);

/* Count a value. Return: 0 or -ENOMEM. */
_must_check_ static inline int histogram_add(struct histogram *histogram, uint64_t value)
{
	const unsigned int bucket = histogram_bucket(value);
	uint32_t *count;

	if (bucket - histogram->first >= histogram->n_counts) {
		const int r = histogram_grow(histogram, bucket);

		if (r < 0)
			return r;
	}
	count = &histogram->counts[bucket - histogram->first];
	*count += *count < UINT32_MAX;
	if (histogram->n++ == 0)
		histogram->min = histogram->max = value;
	else if (value < histogram->min)
		histogram->min = value;
	else if (value > histogram->max)
		histogram->max = value;
	return 0;
}

/*
 * Return: the smallest value that is not less than @per_mille thousandths of all values, as exact
 *         as the buckets are; 0 without a value.
 */
uint64_t histogram_quantile(const struct histogram *histogram, unsigned int per_mille);
