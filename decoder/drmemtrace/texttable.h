/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Texttable
 *
 * A file of the aux/ directory: a heading, and rows whose columns have tabs between them.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

#define TEXTTABLE_COLUMNS_MAX 16

/* Take a row. Return: 0; -EBADMSG if it is none; or another negative errno. */
typedef int (*texttable_row_fn)(void *userdata, char **columns);

/*
 * Read the file at @path, whose heading must be @heading, and give @take each row. The columns lie
 * in @ret_text, which the caller frees, also behind an error.
 *
 * Return: 0; -EBADMSG, if line @ret_line (from 1) is none of such a table; or negative errno of
 *         reading or of @take. @ret_line is 0 if the file could not be read.
 */
_must_check_ int texttable_read(const char *path, const char *heading, texttable_row_fn take,
				void *userdata, char **ret_text, size_t *ret_line);

/* Read all of @text as a number. Return: whether it is one, with small letters in base 16. */
bool texttable_number(const char *text, int base, uint64_t *ret_number);
