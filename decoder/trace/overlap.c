/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/trace/overlap.h"

#include <string.h>

#include "decoder/pt/psbs.h"
#include "util/psb.h"
#include "util/window.h"

/* At most so many bytes are compared for each byte of the two pieces. Streams that repeat
 * themselves would take more. */
#define COMPARED_RATIO_MAX 16

/* At the end of a piece. */
#define PADDING_MAX 7u

#define NONE UINT64_MAX

/* Return: the offset of the last PSB that begins before @end and has all of its bytes before it;
 *         NONE if there is none. */
static uint64_t last_psb(struct window *w, uint64_t end)
{
	const size_t step = w->capacity ? w->capacity : WINDOW_SIZE;
	uint64_t start;

	for (; end >= PSB_SIZE && w->error == 0; end = start + PSB_SIZE - 1) {
		const uint8_t *bytes, *at;
		size_t n;

		start = end > step ? end - step : 0;
		bytes = window_at(w, start, (size_t)(end - start), &n);
		if (n < end - start)
			return NONE;
		n = (size_t)(end - start);
		for (at = bytes + n; (at = memrchr(bytes, psb_bytes[0], (size_t)(at - bytes)));)
			if ((size_t)(bytes + n - at) >= PSB_SIZE &&
			    memcmp(at, psb_bytes, PSB_SIZE) == 0)
				return start + (uint64_t)(at - bytes);
		if (start == 0)
			break;
	}
	return NONE;
}

/* Return: the offset of the PSB of @earlier that is looked for, or NONE; and how many bytes of it
 *         and what follows are its mark. */
static uint64_t anchor_of(struct window *earlier, bool has_tsc, uint64_t *ret_size)
{
	uint64_t at = last_psb(earlier, earlier->all.size);

	*ret_size = PSB_SIZE;
	/* The one before may share bytes with it: where the two bytes of a PSB repeat for longer
	 * than a PSB, another one begins at each pair. */
	while (at != NONE && has_tsc) {
		*ret_size = psbs_timed_size(earlier, at);
		if (*ret_size)
			break;
		at = last_psb(earlier, at + PSB_SIZE - 1);
	}
	return at;
}

/* Return: how many of the @n bytes at @a_at and @b_at are equal, up to the first that differ. */
static uint64_t count_alike(struct window *a, uint64_t a_at, struct window *b, uint64_t b_at,
			    uint64_t n)
{
	uint64_t alike = 0;

	while (alike < n) {
		size_t n_a, n_b, here, i = 0;
		const uint8_t *bytes_a = window_at(a, a_at + alike, 1, &n_a);
		const uint8_t *bytes_b = window_at(b, b_at + alike, 1, &n_b);

		here = n_a < n_b ? n_a : n_b;
		if (here > n - alike)
			here = (size_t)(n - alike);
		if (here == 0)
			break;
		if (memcmp(bytes_a, bytes_b, here) != 0) {
			while (bytes_a[i] == bytes_b[i])
				i++;
			return alike + i;
		}
		alike += here;
	}
	return alike;
}

/* Return: whether the @n bytes are the same in both. If those of @earlier are its last ones, as
 *         @up_to_end says, they may end in padding. */
static bool same_bytes(struct window *earlier, uint64_t earlier_at, struct window *later,
		       uint64_t later_at, uint64_t n, bool up_to_end, uint64_t *ret_padding)
{
	const uint64_t alike = count_alike(earlier, earlier_at, later, later_at, n);
	const uint8_t *bytes;
	size_t n_bytes;

	*ret_padding = n - alike;
	if (alike == n)
		return true;
	if (!up_to_end || n - alike > PADDING_MAX)
		return false;
	bytes = window_at(earlier, earlier_at + alike, PADDING_MAX, &n_bytes);
	for (uint64_t i = 0; i < n - alike; i++)
		if (i >= n_bytes || bytes[i])
			return false;
	return true;
}

bool overlap_find(struct window *earlier, struct window *later, bool has_tsc, uint64_t *ret_before,
		  uint64_t *ret_repeated, uint64_t *ret_padding)
{
	const uint64_t earlier_size = earlier->all.size, later_size = later->all.size;
	uint64_t budget = COMPARED_RATIO_MAX * (earlier_size + later_size);
	uint64_t anchor_size, before = 0, repeated = 0;
	const uint64_t anchor_at = anchor_of(earlier, has_tsc, &anchor_size);

	if (anchor_at == NONE)
		return false;
	for (uint64_t at = psb_find(later, 0); at < later_size; at = psb_find(later, at + 1)) {
		const uint64_t skip_earlier = anchor_at > at ? anchor_at - at : 0;
		const uint64_t skip_later = at > anchor_at ? at - anchor_at : 0;
		uint64_t n = earlier_size - skip_earlier, padding;

		if (n > later_size - skip_later)
			n = later_size - skip_later;
		/* It ends before the anchor's time does. */
		if (later_size - at < anchor_size ||
		    count_alike(earlier, anchor_at, later, at, anchor_size) < anchor_size)
			continue;
		if (n > budget)
			return false;
		budget -= n;
		if (!same_bytes(earlier, skip_earlier, later, skip_later, n,
				skip_earlier + n == earlier_size, &padding))
			continue;
		before = skip_later;
		repeated = n - padding;
		*ret_padding = padding;
	}

	*ret_before = before;
	*ret_repeated = repeated;
	return repeated > 0 && earlier->error == 0 && later->error == 0;
}
