/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Regular
 *
 * A regular file at a path that somebody else chose. Opening a FIFO may wait for ever and wakes
 * whoever waits at its other end, and opening a device may start or rewind it, so nothing else is
 * opened even for a moment, also if the file is replaced meanwhile.
 */

#include "base/base.h"

/*
 * Open the file at @path, relative to @dir_fd, to read it.
 *
 * @flags: O_NOFOLLOW, or 0
 *
 * Return: its descriptor, which the caller closes; -EISDIR; -ELOOP if it is a symbolic link that is
 *         not followed; -EINVAL if it is something else; or another negative errno.
 */
_must_check_ int regular_open(int dir_fd, const char *path, int flags);

/* Open the file that is open with O_PATH at @path_fd, which stays open. Return: as above. */
_must_check_ int regular_reopen(int path_fd);
