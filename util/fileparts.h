/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * File parts
 *
 * Bytes that belong together and lie in one or more parts of files, for example the PT of a CPU,
 * which perf.data has in many records. They are read from the files each time, and never mapped:
 * a writer of the file may cut it off at any time, and pages behind the end of a mapped file
 * kill the process that looks at them.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

struct pieces;

/* One part. It ends where the next one starts. */
struct filepart {
	uint64_t start;        /* in all the bytes */
	uint64_t offset;       /* in the file */
	int fd;                /* borrowed */
	struct pieces *pieces; /* of the file, by which all that is read is checked; or NULL */
};

struct fileparts {
	uint64_t size;
	/* Not NULL: the bytes are in memory, here, and in no file. Borrowed, like the parts. */
	const uint8_t *memory;
	const struct filepart *parts; /* by start, the first of which is 0 */
	size_t n;
};

static inline struct fileparts fileparts_in_memory(const void *bytes, uint64_t size)
{
	return (struct fileparts){ .memory = bytes, .size = size };
}

/*
 * Read the @size bytes at @offset, which must be there.
 *
 * Return: 0; -ESTALE if a file has become shorter than it was; -EKEYREJECTED if its pieces are not
 *         those that they should be; or another negative errno.
 */
_must_check_ int fileparts_read(const struct fileparts *parts, uint64_t offset, void *ret_bytes,
				size_t size);

/*
 * Read the @size bytes at @offset, which must be there; or fewer, because those
 * behind them are not in pieces as they should be.
 *
 * Return: 0 and @ret_n, how many; -EKEYREJECTED if not even one can be read; or as above.
 */
_must_check_ int fileparts_read_some(const struct fileparts *parts, uint64_t offset,
				     void *ret_bytes, size_t size, size_t *ret_n);

/* Read @size bytes that are @offset behind the beginning of @part. Return: as fileparts_read(). */
_must_check_ int filepart_read(const struct filepart *part, uint64_t offset, void *ret_bytes,
			       size_t size);

/* Read @size bytes at @offset of the file that is open at @fd. Return: likewise. */
_must_check_ int fileparts_read_fd(int fd, uint64_t offset, void *ret_bytes, size_t size);
