/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "util/fileparts.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "util/pieces.h"
#include "util/vec.h"

int fileparts_read_fd(int fd, uint64_t offset, void *ret_bytes, size_t size)
{
	uint8_t *to = ret_bytes;

	while (size > 0) {
		const ssize_t n = pread(fd, to, size, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -ESTALE;
		to += n;
		offset += (uint64_t)n;
		size -= (size_t)n;
	}
	return 0;
}

int filepart_read(const struct filepart *part, uint64_t offset, void *ret_bytes, size_t size)
{
	const uint64_t at = part->offset + offset;
	const int r = part->pieces ? pieces_check(part->pieces, part->fd, at, size) : 0;

	return r < 0 ? r : fileparts_read_fd(part->fd, at, ret_bytes, size);
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

int fileparts_read(const struct fileparts *parts, uint64_t offset, void *ret_bytes, size_t size)
{
	uint8_t *to = ret_bytes;

	assert(offset <= parts->size && size <= parts->size - offset);
	if (size == 0)
		return 0;
	if (parts->memory) {
		memcpy(to, parts->memory + offset, size);
		return 0;
	}
	for (size_t i = part_at(parts, offset); size > 0; i++) {
		const struct filepart *part = &parts->parts[i];
		const uint64_t end = i + 1 < parts->n ? part[1].start : parts->size;
		const size_t n = end - offset < size ? (size_t)(end - offset) : size;
		const int r = filepart_read(part, offset - part->start, to, n);

		if (r < 0)
			return r;
		to += n;
		offset += n;
		size -= n;
	}
	return 0;
}
