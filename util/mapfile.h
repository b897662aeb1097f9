/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Mapped file
 *
 * The bytes of a regular file in memory: mapped, or read. While a file is mapped, nobody may cut it
 * off, or whoever looks at the bytes is killed (SIGBUS).
 */

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

struct mapfile {
	const uint8_t *bytes; /* NULL if the file is empty */
	size_t size;
};

/*
 * Map the file at @path, relative to @dir_fd (AT_FDCWD for the working directory).
 *
 * Return: 0; -EINVAL if it is not a regular file; or negative errno.
 */
_must_check_ int mapfile_init(struct mapfile *mapfile, int dir_fd, const char *path);

/*
 * Read the file at @path: the bytes stay as they are, whatever becomes of the file, and may be
 * written to.
 *
 * Return: as above; -ESTALE if the file became shorter meanwhile.
 */
_must_check_ int mapfile_read(struct mapfile *mapfile, int dir_fd, const char *path);

/* Map the file that is open at @fd, which stays open. */
_must_check_ int mapfile_init_fd(struct mapfile *mapfile, int fd);

/*
 * The same for @size bytes of that file. @offset is a multiple of the page size, and the file must
 * have these bytes.
 */
_must_check_ int mapfile_init_part(struct mapfile *mapfile, int fd, uint64_t offset, uint64_t size);

void mapfile_deinit(struct mapfile *mapfile);

/*
 * Give the memory of the @size bytes at @bytes back to the system, as they will not be needed soon;
 * if they do not lie in this file, do nothing. They are read from the file again when they are
 * needed, so that what was written to them is lost.
 */
void mapfile_evict(const struct mapfile *mapfile, const uint8_t *bytes, size_t size);
