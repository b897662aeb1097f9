/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Mapped file
 *
 * The bytes of a regular file, read into a mapping of their own: they stay as they are, whatever
 * becomes of the file, and may be written to. Holes of the file take no memory.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

struct mapfile {
	const uint8_t *bytes; /* NULL if the file is empty */
	size_t size;
};

/*
 * Read the file at @path, relative to @dir_fd (AT_FDCWD for the working directory).
 *
 * Return: 0; -EINVAL if it is not a regular file; -ESTALE if it became shorter meanwhile; or
 *         another negative errno.
 */
_must_check_ int mapfile_read(struct mapfile *mapfile, int dir_fd, const char *path);

void mapfile_deinit(struct mapfile *mapfile);
