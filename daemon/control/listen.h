/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Listen
 *
 * Gets the control socket: the one that systemd passed, or else a new one.
 */

#include "base/base.h"

/*
 * Get the listening socket, which is non-blocking.
 *
 * If systemd passed none, the socket is made at @runtime_dir/control, where it replaces one that
 * nothing listens on. @ret_path is then the path, which the caller frees and unlinks in the end;
 * otherwise it is NULL.
 *
 * Return: 0 and @ret_fd; -EADDRINUSE if another process listens there; -ENAMETOOLONG; or another
 *         negative errno.
 */
_must_check_ int listen_control(const char *runtime_dir, int *ret_fd, char **ret_path);
