/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Inherit
 *
 * Descriptors that whoever started this process left open in it. A confined process must not be
 * able to use one that happens to be there.
 */

#include <stddef.h>

#include "base/base.h"

/*
 * Close all but stdout, stderr, and those that one of @paths names: "-" (standard input),
 * /dev/stdin, /dev/fd/N, or /proc/self/fd/N. /dev/null takes the place of a standard input that is
 * closed. Paths may be NULL.
 *
 * Return: 0, or negative errno.
 */
_must_check_ int inherit_only(const char *const *paths, size_t n);
