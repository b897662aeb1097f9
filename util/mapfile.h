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

void mapfile_deinit(struct mapfile *mapfile);
