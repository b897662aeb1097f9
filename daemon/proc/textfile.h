/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Text file
 *
 * Streams of lines, from and to files below a folder that is open.
 */

#include <stdint.h>
#include <stdio.h>

#include "base/base.h"

/* Open the file for reading. Return: 0, and the caller closes it; or negative errno. */
_must_check_ int textfile_open(int dir_fd, const char *name, FILE **ret_file);

/* Make the file, for writing: there must be none. Return: as above. */
_must_check_ int textfile_create(int dir_fd, const char *name, FILE **ret_file);

/*
 * Close one that was made; it is NULL afterwards.
 *
 * @bytes: its size is added to it
 *
 * Return: 0; -EIO if not all was written.
 */
_must_check_ int textfile_finish(FILE **file, uint64_t *bytes);

static inline void textfile_closep(FILE **file)
{
	if (*file)
		(void)fclose(*file);
}
