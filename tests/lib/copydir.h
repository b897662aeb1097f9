/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Copied snapshot
 *
 * A snapshot that a test changes: a directory whose files are links to those of another snapshot.
 * It has no SHA256SUMS, and `data` is for the test to write.
 */

#include <stddef.h>

#include "base/base.h"

/* Copy the snapshot @from into the new directory @to. Return: 0 or negative errno. */
_must_check_ int copydir_new(const char *from, const char *to);

/* Write the file @dir/@name anew. Return: 0 or negative errno. */
_must_check_ int copydir_write(const char *dir, const char *name, const void *bytes, size_t size);
