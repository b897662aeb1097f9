/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/sink/answer/histogram.h"

#include <errno.h>
#include <string.h>

void histogram_deinit(struct histogram *histogram)
{
	free(histogram->counts);
	*histogram = (struct histogram){};
}

/* Whole octaves are added, so that a few values of similar size allocate once. */
int histogram_grow(struct histogram *histogram, unsigned int bucket)
{
	const unsigned int octave = bucket / HISTOGRAM_OCTAVE * HISTOGRAM_OCTAVE;
	unsigned int first = octave, end = octave + HISTOGRAM_OCTAVE;
	uint32_t *counts;

	if (histogram->n_counts > 0 && histogram->first < first)
		first = histogram->first;
	if (histogram->n_counts > 0 && histogram->first + histogram->n_counts > end)
		end = histogram->first + histogram->n_counts;
	counts = calloc(end - first, sizeof(*counts));
	if (!counts)
		return -ENOMEM;
	if (histogram->n_counts > 0)
		memcpy(counts + (histogram->first - first), histogram->counts,
		       histogram->n_counts * sizeof(*counts));
	free(histogram->counts);
	histogram->counts = counts;
	histogram->first = (uint16_t)first;
	histogram->n_counts = (uint16_t)(end - first);
	return 0;
}

/* Return: the middle of the values of @bucket. */
static uint64_t middle_of(unsigned int bucket)
{
	const unsigned int octave = bucket / HISTOGRAM_OCTAVE;
	const unsigned int shift = octave > 0 ? octave - 1 : 0;
	const uint64_t low = (uint64_t)(bucket - shift * HISTOGRAM_OCTAVE) << shift;

	return low + (((uint64_t)1 << shift) - 1) / 2;
}

uint64_t histogram_quantile(const struct histogram *histogram, unsigned int per_mille)
{
	const unsigned __int128 product = (unsigned __int128)histogram->n * per_mille;
	const uint64_t rank = (uint64_t)((product + 999) / 1000); /* of the value sought, from 1 */
	uint64_t n = 0;

	if (histogram->n == 0)
		return 0;
	if (rank <= 1)
		return histogram->min;
	for (unsigned int i = 0; i < histogram->n_counts && rank < histogram->n; i++) {
		const uint64_t middle = middle_of(histogram->first + i);

		n += histogram->counts[i];
		if (n < rank)
			continue;
		return middle < histogram->min   ? histogram->min
		       : middle > histogram->max ? histogram->max
						 : middle;
	}
	return histogram->max;
}
