/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "util/window.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

void window_init(struct window *window, const struct fileparts *all, size_t capacity)
{
	*window = (struct window){ .all = *all, .capacity = capacity };
	if (capacity > 0)
		return;
	assert(all->memory || all->size == 0);
	window->bytes = all->memory;
	window->n = (size_t)all->size;
}

void window_deinit(struct window *window)
{
	free(window->buffer);
	*window = (struct window){};
}

static const uint8_t *fail(struct window *window, int error, size_t *ret_n)
{
	window->n = *ret_n = 0;
	window->error = error;
	return NULL;
}

const uint8_t *window_move(struct window *window, uint64_t offset, size_t least, size_t *ret_n)
{
	const uint64_t size = window->all.size;
	const uint64_t left = offset < size ? size - offset : 0;
	size_t n;
	int r;

	if (window->capacity == 0) {
		*ret_n = (size_t)left;
		return left > 0 ? window->bytes + offset : NULL;
	}
	if (window->error < 0 || left == 0) {
		*ret_n = 0;
		return NULL;
	}
	if (!window->buffer) {
		window->buffer = malloc(window->capacity < size ? window->capacity : (size_t)size);
		if (!window->buffer)
			return fail(window, -ENOMEM, ret_n);
		window->bytes = window->buffer;
	}
	window->start = offset;
	n = left < window->capacity ? (size_t)left : window->capacity;
	r = fileparts_read_some(&window->all, offset, window->buffer, n, &window->n);
	if (r == 0 && window->n < n && window->n < least)
		r = -EKEYREJECTED;
	if (r < 0)
		return fail(window, r, ret_n);
	*ret_n = window->n;
	return window->bytes;
}

uint64_t window_find(struct window *window, uint64_t from, const void *needle, size_t n)
{
	const uint8_t *bytes, *found;
	size_t n_here;

	for (;; from += n_here - (n - 1)) {
		bytes = window_at(window, from, n, &n_here);
		if (n_here < n)
			return window->all.size;
		found = memmem(bytes, n_here, needle, n);
		if (found)
			return from + (uint64_t)(found - bytes);
	}
}
