/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "util/fileparts.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "util/fullwrite.h"
#include "util/pieces.h"
#include "util/vec.h"

int fileparts_read_fd(int fd, uint64_t offset, void *ret_bytes, size_t size)
{
	const ssize_t n = fullread_at(fd, ret_bytes, size, offset);

	return n < 0 ? (int)n : (size_t)n < size ? -ESTALE : 0;
}

/* Read the bytes at @offset of the part, as fileparts_read_some() does. */
static int read_some(const struct filepart *part, uint64_t offset, void *ret_bytes, size_t size,
		     size_t *ret_n)
{
	const uint64_t at = part->offset + offset;
	uint64_t n = size;
	int r = 0;

	if (part->pieces && size > 0)
		r = pieces_check(part->pieces, part->fd, at, size, &n);
	if (r == 0)
		r = fileparts_read_fd(part->fd, at, ret_bytes, (size_t)n);
	if (r == 0)
		*ret_n = (size_t)n;
	return r;
}

int filepart_read(const struct filepart *part, uint64_t offset, void *ret_bytes, size_t size)
{
	size_t n;
	const int r = read_some(part, offset, ret_bytes, size, &n);

	return r == 0 && n < size ? -EKEYREJECTED : r;
}

/* Return: the index of the part that has the byte at @offset. */
static size_t part_at(const struct fileparts *parts, uint64_t offset)
{
	const struct {
		const struct filepart *items;
		size_t n;
	} all = { parts->parts, parts->n };

	return vec_bisect(&all, part, part->start <= offset) - 1;
}

int fileparts_read_some(const struct fileparts *parts, uint64_t offset, void *ret_bytes,
			size_t size, size_t *ret_n)
{
	uint8_t *to = ret_bytes;
	size_t done = 0;

	assert(offset <= parts->size && size <= parts->size - offset);
	if (parts->memory && size > 0) {
		memcpy(to, parts->memory + offset, size);
		done = size;
	}
	for (size_t i = done < size ? part_at(parts, offset) : 0; done < size; i++) {
		const struct filepart *part = &parts->parts[i];
		const uint64_t end = i + 1 < parts->n ? part[1].start : parts->size;
		const uint64_t at = offset + done;
		const size_t size_here = end - at < size - done ? (size_t)(end - at) : size - done;
		size_t n = 0;
		const int r = read_some(part, at - part->start, to + done, size_here, &n);

		done += n;
		if (r == -EKEYREJECTED && done > 0)
			break;
		if (r < 0)
			return r;
		if (n < size_here)
			break;
	}
	*ret_n = done;
	return 0;
}

int fileparts_read(const struct fileparts *parts, uint64_t offset, void *ret_bytes, size_t size)
{
	size_t n;
	const int r = fileparts_read_some(parts, offset, ret_bytes, size, &n);

	return r == 0 && n < size ? -EKEYREJECTED : r;
}
