/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Copydir
 *
 * A snapshot with another `data`: its other files are links to those of the snapshot it was made
 * from, without SHA256SUMS.
 */

#include <stddef.h>

#include "base/base.h"

/* Make the directory @to, which must not exist, from the snapshot @from. Return: 0 or negative
 * errno. */
_must_check_ int copydir_new(const char *from, const char *to);

/* Write @dir/@name anew. Return: 0 or negative errno. */
_must_check_ int copydir_write(const char *dir, const char *name, const void *bytes, size_t size);
