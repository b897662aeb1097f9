/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/file/overlap.h"

#include <string.h>

/* Bytes that are compared, for each that there is: streams that repeat themselves would need more. */
#define COMPARED_RATIO_MAX 16

/* At the end of a piece. */
#define PADDING_MAX 7u

#define PSB_SIZE 16
#define TSC_SIZE 8

static const uint8_t psb[PSB_SIZE] = { 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82,
				       0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82 };

/* The PSB at or after @at; NULL if there is none. */
static const uint8_t *next_psb(const uint8_t *at, const uint8_t *end)
{
	return at < end ? memmem(at, (size_t)(end - at), psb, PSB_SIZE) : NULL;
}

/* The last PSB that begins before @end, whose bytes are all there; NULL if there is none. */
static const uint8_t *last_psb(const uint8_t *start, const uint8_t *end)
{
	for (const uint8_t *at = end; at > start;) {
		at = memrchr(start, psb[0], (size_t)(at - start));
		if (!at)
			return NULL;
		if (end - at >= PSB_SIZE && memcmp(at, psb, PSB_SIZE) == 0)
			return at;
	}
	return NULL;
}

/* Does the PSB have a whole TSC packet right behind it? That is where CPUs put it. */
static bool has_time(const uint8_t *at, const uint8_t *end)
{
	at += PSB_SIZE;
	return end - at >= TSC_SIZE && at[0] == 0x19;
}

/* The PSB of @earlier that is looked for. */
static const uint8_t *anchor_of(const uint8_t *start, const uint8_t *end, bool has_tsc)
{
	const uint8_t *at = last_psb(start, end);

	/* A stretch of it is a PSB, too: the one that begins first is it. */
	while (at && has_tsc && !has_time(at, end))
		at = last_psb(start, at + PSB_SIZE - 1);
	return at;
}

/*
 * Are the @n bytes the same? Those of @earlier may end in padding, if they are @up_to_end.
 */
static bool same(const uint8_t *earlier, const uint8_t *later, size_t n, bool up_to_end,
		 size_t *ret_padding)
{
	const size_t padding_max = !up_to_end ? 0 : n < PADDING_MAX ? n : PADDING_MAX;
	size_t alike = n - padding_max;

	if (memcmp(earlier, later, alike) != 0)
		return false;
	while (alike < n && earlier[alike] == later[alike])
		alike++;
	*ret_padding = n - alike;
	while (alike < n && earlier[alike] == 0)
		alike++;
	return alike == n;
}

bool overlap_find(const uint8_t *earlier, size_t earlier_size, const uint8_t *later,
		  size_t later_size, bool has_tsc, size_t *ret_before, size_t *ret_repeated,
		  size_t *ret_padding)
{
	const uint8_t *anchor = anchor_of(earlier, earlier + earlier_size, has_tsc);
	uint64_t budget = COMPARED_RATIO_MAX * ((uint64_t)earlier_size + later_size);
	size_t anchor_at, before = 0, repeated = 0;

	if (!anchor)
		return false;
	anchor_at = (size_t)(anchor - earlier);

	for (const uint8_t *at = next_psb(later, later + later_size); at;
	     at = next_psb(at + 1, later + later_size)) {
		const size_t later_at = (size_t)(at - later);
		const size_t skip_earlier = anchor_at > later_at ? anchor_at - later_at : 0;
		const size_t skip_later = later_at > anchor_at ? later_at - anchor_at : 0;
		size_t n = earlier_size - skip_earlier, padding;

		if (n > later_size - skip_later)
			n = later_size - skip_later;
		/* It ends before the anchor's time does. */
		if (later_size - later_at < PSB_SIZE + (has_tsc ? TSC_SIZE : 0u) ||
		    memcmp(anchor, at, PSB_SIZE + (has_tsc ? TSC_SIZE : 0u)) != 0)
			continue;
		if (n > budget)
			return false;
		budget -= n;
		if (!same(earlier + skip_earlier, later + skip_later, n,
			  skip_earlier + n == earlier_size, &padding))
			continue;
		before = skip_later;
		repeated = n - padding;
		*ret_padding = padding;
	}

	*ret_before = before;
	*ret_repeated = repeated;
	return repeated > 0;
}
