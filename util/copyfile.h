/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Copyfile
 *
 * The bytes of one file into another: shared by the file system where it can, copied in the kernel
 * where it cannot. Holes stay holes, so that the copy takes no more of the disk than the file does.
 */

#include <stdint.h>

#include "base/base.h"

struct effort;

/*
 * Copy all of the regular file open at @from to the empty one open at @to, whose offset is 0.
 *
 * @effort: may be NULL, see util/effort.h
 *
 * Return: 0; -EFBIG if it has more bytes than @effort allows; -ECANCELED or -ETIMEDOUT; or another
 *         negative errno.
 */
_must_check_ int copyfile_fd(int from, int to, const struct effort *effort);
