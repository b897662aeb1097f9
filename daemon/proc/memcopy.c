/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/proc/memcopy.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#define PAGE       4096u
#define PIECE_SIZE ((size_t)1 << 20) /* bytes that are read before they are passed on */

struct reader {
	uint8_t *piece;
	uint64_t start; /* bytes in use */
	size_t size;
	int64_t n_given;
	memcopy_put_fn put;
	void *userdata;
};

static int give_bytes(struct reader *r)
{
	const size_t n = r->size;

	r->size = 0;
	r->n_given += (int64_t)n;
	return n > 0 ? r->put(r->userdata, r->start, r->piece, n) : 0;
}

/* Append the page at @at. Return: whether it has anything but zeros. */
static bool read_page(int fd, uint64_t at, uint8_t *to)
{
	return pread(fd, to, PAGE, (off_t)at) == PAGE &&
	       !(to[0] == 0 && memcmp(to, to + 1, PAGE - 1) == 0);
}

int64_t memcopy_read(int fd, uint64_t start, uint64_t size, uint64_t n_max, memcopy_put_fn put,
		     void *userdata)
{
	_cleanup_(freep) uint8_t *piece = malloc(PIECE_SIZE);
	struct reader reader = { .piece = piece, .put = put, .userdata = userdata };
	int r = 0;

	if (!piece)
		return -ENOMEM;
	size &= ~(uint64_t)(PAGE - 1);
	for (uint64_t at = start; r == 0 && at - start < size; at += PAGE) {
		const bool full = (uint64_t)reader.n_given + reader.size + PAGE > n_max;

		if (!full && read_page(fd, at, piece + reader.size)) {
			if (reader.size == 0)
				reader.start = at;
			reader.size += PAGE;
			if (reader.size < PIECE_SIZE)
				continue;
		}
		r = give_bytes(&reader);
		if (full)
			break;
	}
	if (r == 0)
		r = give_bytes(&reader);
	return r < 0 ? r : reader.n_given;
}
