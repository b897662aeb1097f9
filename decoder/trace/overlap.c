/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/trace/overlap.h"

#include <string.h>

/* Bytes that are compared, for each that there is: streams that repeat themselves would need
 * more. */
#define COMPARED_RATIO_MAX 16

/* At the end of a piece. */
#define PADDING_MAX 7u

#define PSB_SIZE 16
#define TSC_SIZE 8

/* First byte of packets, and the second of those that have two. */
#define TSC      0x19
#define MODE     0x99
#define MTC      0x59
#define EXT      0x02
#define EXT_CBR  0x03
#define EXT_TMA  0x73
#define EXT_PIP  0x43
#define EXT_VMCS 0xc8

#define CYC_MASK 0x03
#define CYC      0x03
#define CYC_MORE 0x04 /* in the first byte; in others it is */
#define CYC_EXP  0x01
#define IP_MASK  0x1f
#define FUP      0x1d
#define IP_SHIFT 5

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

/* Return: the size of the packet at @at, of those that may stand between a PSB and its TSC; 0: it
 *         is none. */
static size_t size_between(const uint8_t *at, const uint8_t *end)
{
	static const uint8_t ip_sizes[] = { 1, 3, 5, 7, 7, 0, 9, 0 };
	size_t n = 1;

	if ((at[0] & CYC_MASK) == CYC) {
		if (at[0] & CYC_MORE)
			for (n++; at + n <= end && at[n - 1] & CYC_EXP;)
				n++;
		return n;
	}
	if ((at[0] & IP_MASK) == FUP)
		return ip_sizes[at[0] >> IP_SHIFT];
	if (at[0] == 0)
		return 1;
	if (at[0] == MODE || at[0] == MTC)
		return 2;
	if (at[0] != EXT || end - at < 2)
		return 0;
	switch (at[1]) {
	case EXT_CBR:
		return 4;
	case EXT_TMA:
	case EXT_VMCS:
		return 7;
	case EXT_PIP:
		return 8;
	default:
		return 0;
	}
}

/* Return: how far it is from the PSB at @at to behind the TSC that belongs to it; 0: it has none,
 *         or not the whole. */
static size_t timed_size(const uint8_t *at, const uint8_t *end)
{
	const uint8_t *psb_at = at;
	size_t n;

	for (at += PSB_SIZE; at < end && *at != TSC; at += n) {
		n = size_between(at, end);
		if (n == 0 || n > (size_t)(end - at))
			return 0;
	}
	return end - at < TSC_SIZE ? 0 : (size_t)(at + TSC_SIZE - psb_at);
}

/* The PSB of @earlier that is looked for, and how many bytes of it and what follows are its
 * mark. */
static const uint8_t *anchor_of(const uint8_t *start, const uint8_t *end, bool has_tsc,
				size_t *ret_size)
{
	const uint8_t *at = last_psb(start, end);

	*ret_size = PSB_SIZE;
	/* A stretch of it is a PSB, too: the one that begins first is it. */
	while (at && has_tsc) {
		*ret_size = timed_size(at, end);
		if (*ret_size)
			break;
		at = last_psb(start, at + PSB_SIZE - 1);
	}
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
	size_t anchor_size, anchor_at, before = 0, repeated = 0;
	const uint8_t *anchor = anchor_of(earlier, earlier + earlier_size, has_tsc, &anchor_size);
	uint64_t budget = COMPARED_RATIO_MAX * ((uint64_t)earlier_size + later_size);

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
		if (later_size - later_at < anchor_size || memcmp(anchor, at, anchor_size) != 0)
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
