/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Inherit
 *
 * Descriptors that this process inherited from its parent. A confined process must not be able to
 * use one that happens to be open.
 */

#include <stddef.h>

#include "base/base.h"

/*
 * Close all descriptors but stdout, stderr, and those that one of the @n @paths names: "-"
 * (standard input), /dev/stdin, /dev/fd/N, or /proc/self/fd/N. If standard input is closed,
 * /dev/null takes its place. An element of @paths may be NULL. Before Linux 5.9 only standard input
 * can be closed.
 *
 * Return: 0, or negative errno.
 */
_must_check_ int inherit_only(const char *const *paths, size_t n);
