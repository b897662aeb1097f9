/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Regular files
 *
 * Opens regular files at paths that somebody else chose. Opening a FIFO may wait forever and wakes
 * the process at its other end, and opening a device may start or rewind it. So nothing but a
 * regular file is opened, not even for a moment, and also not if the file is replaced meanwhile.
 */

#include "base/base.h"

/*
 * Open the file at @path, relative to @dir_fd, for reading.
 *
 * @flags: O_NOFOLLOW, or 0
 *
 * Return: the descriptor, which the caller closes; -EISDIR; -ELOOP if @path is a symbolic link that
 *         is not followed; -EINVAL if it is anything else; or another negative errno.
 */
_must_check_ int regular_open(int dir_fd, const char *path, int flags);
