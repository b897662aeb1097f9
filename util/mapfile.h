/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Mapfile
 *
 * A regular file's bytes, mapped.
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

/* The same, but the bytes may be written to: nobody else sees that. */
_must_check_ int mapfile_init_writable(struct mapfile *mapfile, int dir_fd, const char *path);

/* The same of the file that is open at @fd, which stays open. */
_must_check_ int mapfile_init_fd(struct mapfile *mapfile, int fd);

/* The same of @size bytes of it, from a multiple of the page size on, which must be there. */
_must_check_ int mapfile_init_part(struct mapfile *mapfile, int fd, uint64_t offset, uint64_t size);

void mapfile_deinit(struct mapfile *mapfile);

/*
 * The @size bytes at @bytes, if they are of this file, will not be needed soon: their memory is
 * given back, and they are read from the file again if they are needed after all. What was
 * written to them is lost.
 */
void mapfile_rest(const struct mapfile *mapfile, const uint8_t *bytes, size_t size);
