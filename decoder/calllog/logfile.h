/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Log file
 *
 * A file of a log, which is read through a window, a piece at a time. One file at a time is open.
 * One that became shorter, or was replaced, since it was opened first is an error.
 */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/base.h"
#include "base/cursor.h"

struct logfile {
	char *path; /* owned */
	uint64_t size;
	dev_t dev;
	ino_t ino;
};

/* Through which one file at a time is read. */
struct logwindow {
	const struct logfile *file; /* NULL: none */
	int fd;
	uint8_t *bytes;
	uint64_t offset; /* of these in the file */
	size_t n;
};

void logwindow_init(struct logwindow *window);
void logwindow_deinit(struct logwindow *window);

/*
 * Open the file at @path, which is copied. The window may not be used for @file once that moves:
 * set window->file to NULL then.
 *
 * Return: 0; or negative errno and @reterr_message.
 */
_must_check_ int logfile_open(struct logfile *file, const char *path, struct logwindow *window,
			      char **reterr_message);
void logfile_deinit(struct logfile *file);

/*
 * Get a cursor over the bytes from @offset on, before @end: @n of them or more, if there are so
 * many. It is valid until the next call.
 *
 * Return: 0; -ESTALE or another negative errno, and @reterr_message, if the file cannot be read.
 */
_must_check_ int logwindow_look(struct logwindow *window, const struct logfile *file,
				uint64_t offset, uint64_t end, size_t n, struct cursor *ret_cursor,
				char **reterr_message);

/*
 * Read a whole file, unless it has more than @max bytes. The caller frees @ret_text.
 *
 * Return: 0; or negative errno and @reterr_message.
 */
_must_check_ int logfile_read(const char *path, uint64_t max, struct logwindow *window,
			      char **ret_text, size_t *ret_size, char **reterr_message);
