/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Copyfile
 *
 * The bytes of one file into another: shared by the file system where it can, copied in the kernel
 * where it cannot.
 */

#include "base/base.h"

/*
 * Copy all of the regular file open at @from to the empty one open at @to, whose offset is 0.
 *
 * Return: 0, or negative errno.
 */
_must_check_ int copyfile_fd(int from, int to);
