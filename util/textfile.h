/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Text file
 *
 * Opens files of lines, as streams; reads small files whole.
 */

#include <stdint.h>
#include <stdio.h>

#include "base/base.h"

/* Open the file for reading. Return: 0 and the stream, which the caller closes; or negative
 * errno. */
_must_check_ int textfile_open(int dir_fd, const char *name, FILE **ret_file);

/* Make a stream of @fd, which is the stream's then, or is closed; or return the negative errno that
 * @fd is. @mode: as of fdopen(3). Return: as above. */
_must_check_ int textfile_from(int fd, const char *mode, FILE **ret_file);

/*
 * Read a small file, such as one of /proc, or what fits of it.
 *
 * @ret_text: ends with a NUL, and is empty if the file cannot be read
 * @size: of @ret_text
 *
 * Return: how many bytes were read, or negative errno.
 */
_must_check_ int textfile_read(int dir_fd, const char *name, char *ret_text, size_t size);

/* Return: the number at the start of the file; @fallback if it cannot be read, or has none. */
long long textfile_number(const char *path, long long fallback);

/* Return: the number of the base in the first line that begins with @name; 0 if there is none. */
uint64_t textfile_field(const char *path, const char *name, int base);

/* Write to the file that is open at @fd, which is borrowed. Return: as textfile_open(). */
_must_check_ int textfile_write(int fd, FILE **ret_file);

/*
 * Close a file that was written, and set @file to NULL.
 *
 * @bytes: where the file now ends is added to it
 *
 * Return: 0; or -EIO if not everything was written.
 */
_must_check_ int textfile_finish(FILE **file, uint64_t *bytes);

static inline void textfile_closep(FILE **file)
{
	if (*file)
		(void)fclose(*file);
}
