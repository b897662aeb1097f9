/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/kernel/history.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static uint16_t given_byte(const struct history_bytes *bytes, uint64_t i)
{
	return i < bytes->size ? bytes->bytes[i] : bytes->fill;
}

/* Return: how many changes are older than the copy. */
static size_t place_copy(const struct history *h)
{
	size_t n = 0;

	if (!h->copy_is_first)
		return h->changes.n;
	while (n < h->changes.n && h->changes.items[n].time == 0)
		n++;
	return n;
}

static int charge_history(const struct history *h, uint64_t *work)
{
	uint64_t left = *work, n_changed = 0;

	if (h->size == 0 || h->size > HISTORY_SIZE_MAX || h->size > left)
		return -E2BIG;
	left -= h->size;
	for (size_t i = 0; i < h->changes.n; i++) {
		const struct history_change *e = &h->changes.items[i];

		assert(e->start <= h->size && e->size <= h->size - e->start);
		assert(i == 0 || e[-1].time <= e->time);
		/* Each version is looked at as a whole. */
		if (h->size + e->size > left || e->size > HISTORY_CHANGED_MAX - n_changed)
			return -E2BIG;
		n_changed += e->size;
		left -= h->size + e->size;
	}
	*work = left;
	return 0;
}

/* Go back to before change @e: @right becomes what @e found, and its old values are kept. */
static int undo(struct history *h, const struct history_change *e)
{
	const int r = vec_reserve(&h->undone, e->size);

	if (r < 0)
		return r;
	for (uint64_t i = 0; i < e->size; i++) {
		uint16_t *right = &h->right[e->start + i];

		h->undone.items[h->undone.n++] = *right;
		*right = given_byte(&e->before, i);
		if (e->sets_owner)
			h->owners[e->start + i] = e->owner_before;
	}
	return 0;
}

static void redo(struct history *h, const struct history_change *e)
{
	const uint16_t *undone;

	assert(h->undone.n >= e->size);
	h->undone.n -= e->size;
	undone = h->undone.items + h->undone.n;
	for (uint64_t i = 0; i < e->size; i++) {
		h->right[e->start + i] = undone[i];
		h->left[e->start + i] = given_byte(&e->after, i);
		if (e->sets_owner)
			h->owners[e->start + i] = e->owner_after;
	}
}

/* Go back to before the copy, which is like a change of the whole range. */
static int undo_copy(struct history *h)
{
	const int r = vec_reserve(&h->undone, h->size);

	if (r < 0)
		return r;
	memcpy(h->undone.items + h->undone.n, h->right, h->size * sizeof(*h->right));
	h->undone.n += h->size;
	memcpy(h->right, h->copy, h->size * sizeof(*h->right));
	return 0;
}

/* Return: the value of a byte that is given as @left and as @right. */
static uint16_t agree(uint16_t left, uint16_t right)
{
	if (left == HISTORY_ANY)
		return right;
	return right == HISTORY_ANY || left == right ? left : HISTORY_NONE;
}

static void redo_copy(struct history *h)
{
	assert(h->undone.n >= h->size);
	h->undone.n -= h->size;
	memcpy(h->right, h->undone.items + h->undone.n, h->size * sizeof(*h->right));
	for (uint64_t i = 0; i < h->size; i++)
		h->left[i] = agree(h->left[i], h->copy[i]);
}

int history_begin(struct history *history, uint64_t size, const uint16_t *copy, bool copy_is_first,
		  uint64_t *work)
{
	struct history *h = history;
	size_t copy_at;
	int r;

	h->size = size;
	h->copy = copy;
	h->copy_is_first = copy_is_first;
	r = charge_history(h, work);
	if (r < 0)
		return r;
	copy_at = place_copy(h);
	h->left = malloc(size * sizeof(*h->left));
	h->right = malloc(size * sizeof(*h->right));
	h->owners = calloc(size, sizeof(const struct object *));
	if (!h->left || !h->right || !h->owners)
		return -ENOMEM;
	for (uint64_t i = 0; i < size; i++)
		h->left[i] = h->right[i] = HISTORY_ANY;
	for (size_t i = h->changes.n + 1; r == 0 && i-- > 0;) {
		if (i == copy_at)
			r = undo_copy(h);
		if (r == 0 && i > 0)
			r = undo(h, &h->changes.items[i - 1]);
	}
	return r;
}

void history_deinit(struct history *history)
{
	vec_deinit(&history->changes);
	vec_deinit(&history->undone);
	free(history->left);
	free(history->right);
	free(history->owners);
	*history = (struct history){};
}

bool history_next(struct history *history, uint64_t *ret_time)
{
	struct history *h = history;
	const uint64_t time = !h->began                ? 0
			      : h->next < h->changes.n ? h->changes.items[h->next].time
						       : 0;

	if (h->began && h->next == h->changes.n)
		return false;
	for (; h->next < h->changes.n && h->changes.items[h->next].time == time; h->next++)
		redo(h, &h->changes.items[h->next]);
	/* A copy that is younger than all changes matters only to what was before it. */
	if (!h->began && h->copy_is_first)
		redo_copy(h);
	h->began = true;
	*ret_time = time;
	return true;
}

uint16_t history_byte(const struct history *history, uint64_t i)
{
	return agree(history->left[i], history->right[i]);
}

const struct object *history_owner(const struct history *history, uint64_t i)
{
	return history->owners[i];
}
