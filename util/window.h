/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Window
 *
 * A reader that goes over bytes in files (fileparts.h) and holds a bounded piece of them in memory,
 * whatever the size of the files. It moves when bytes outside of the piece are asked for. A window
 * over bytes that are in memory already, and that is not made smaller, holds them all and copies
 * nothing.
 *
 * An error of reading is kept in the window, which then is empty for ever, as if the bytes ended:
 * the reader has to look at window->error when it is at what seems to be the end. Bytes in a piece
 * that is not as it should be (util/pieces.h) are an error once they are needed, and not before.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "util/fileparts.h"

/* For who reads from the beginning to the end. */
#define WINDOW_SIZE (size_t)(1 << 16)

struct window {
	struct fileparts all;
	size_t capacity;
	uint8_t *buffer;      /* owned; NULL until it is needed */
	const uint8_t *bytes; /* those that the window holds: */
	uint64_t start;       /* offset of the first one */
	size_t n;
	int error; /* negative errno, as of fileparts_read() and -ENOMEM; 0: none */
};

/*
 * Begin with an empty window over @all, whose parts are borrowed. @capacity is how many bytes it
 * holds; 0: all, which must be in memory.
 */
void window_init(struct window *window, const struct fileparts *all, size_t capacity);
void window_deinit(struct window *window);

/* Let the window begin at @offset. Otherwise as window_at(). */
const uint8_t *window_move(struct window *window, uint64_t offset, size_t least, size_t *ret_n);

/*
 * Get the bytes at @offset: at least @least of them, or all up to the end; these must fit. They
 * are valid until the next call.
 *
 * Return: the bytes, and @ret_n, how many they are. NULL with 0 at the end, or after an error.
 */
static inline const uint8_t *window_at(struct window *window, uint64_t offset, size_t least,
				       size_t *ret_n)
{
	if (offset >= window->start && offset - window->start < window->n) {
		const size_t at = (size_t)(offset - window->start);

		if (window->n - at >= least || window->start + window->n == window->all.size) {
			*ret_n = window->n - at;
			return window->bytes + at;
		}
	}
	return window_move(window, offset, least, ret_n);
}

/*
 * Find the first place at or after @from where the bytes are the @n bytes at @needle, which must
 * fit into the window.
 *
 * Return: its offset; the size of all bytes if there is none, or after an error.
 */
uint64_t window_find(struct window *window, uint64_t from, const void *needle, size_t n);
