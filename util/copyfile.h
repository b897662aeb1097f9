/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Copying files
 *
 * The file system shares the bytes of the copy with the original where it can; elsewhere the kernel
 * copies them. Holes stay holes, so that the copy takes no more room on the disk than the original.
 */

#include <stdint.h>

#include <stdint.h>

#include "base/base.h"

struct effort;

/*
 * Copy all of the regular file open at @from to the empty one open at @to, whose offset is 0.
 *
 * @effort: may be NULL, see util/effort.h
 *
 * Return: 0; -EFBIG if the file has more bytes than @effort allows; -ECANCELED or -ETIMEDOUT, as
 *         effort_check() says; or another negative errno.
 */
_must_check_ int copyfile_fd(int from, int to, const struct effort *effort);

/*
 * Copy the first @size bytes, or all if it has fewer, into the file open at @to. Blocks of zeros
 * become holes. @from may be written to meanwhile.
 *
 * Return: 0, or negative errno.
 */
_must_check_ int copyfile_first(int from, int to, uint64_t size);
