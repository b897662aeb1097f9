/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Listen
 *
 * The control socket itself: the one that systemd hands us, or one of our own making.
 */

#include "base/base.h"

/*
 * Return in @ret_fd the listening socket, non-blocking.
 *
 * If systemd passed none, it is made at @runtime_dir/control, a dead one in its place is replaced,
 * and @ret_path, which the caller frees, is what is to be unlinked in the end; otherwise NULL.
 *
 * Return: 0; -EADDRINUSE if somebody answers there already; -ENAMETOOLONG; or negative errno.
 */
_must_check_ int listen_control(const char *runtime_dir, int *ret_fd, char **ret_path);
