/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Text line
 *
 * The lines of the text files of a snapshot: of its manifest and of its SHA256SUMS.
 */

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/base.h"
#include "base/cursor.h"
#include "util/mapfile.h"
#include "util/sha256.h"

/* Room for a line: a hash, two characters, a path, and the NUL. */
#define TEXTLINE_SIZE_MAX (PATH_MAX + SHA256_HEX_SIZE + 2)

/* Return: a cursor at the first line of @file. An empty file has no bytes to point at. */
static inline struct cursor textline_first(const struct mapfile *file)
{
	return file->size ? cursor_from(file->bytes, file->size) : cursor_from("", 0);
}

/*
 * Take the next line, without its newline, as a string. Return: 0; -ENODATA at the end; -EBADMSG if
 * it is too long or holds a NUL.
 */
_must_check_ static inline int textline_next(struct cursor *c,
					     char ret_line[static TEXTLINE_SIZE_MAX])
{
	const size_t left = cursor_left(c);
	const uint8_t *newline;
	size_t size;
	uint8_t end;

	if (left == 0)
		return -ENODATA;
	newline = memchr(c->pos, '\n', left);
	size = newline ? (size_t)(newline - c->pos) : left;
	if (size >= TEXTLINE_SIZE_MAX || memchr(c->pos, 0, size))
		return -EBADMSG;

	ret_line[size] = 0;
	return cursor_get(c, size, ret_line) ?: newline ? cursor_get(c, 1, &end) : 0;
}
