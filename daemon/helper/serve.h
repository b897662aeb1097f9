/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Serving
 *
 * How a helper process of ptd (daemon/helper/helper.h) listens at its socket, and says to the
 * service manager that ptd can connect.
 */

#include "base/base.h"

/*
 * Listen at @path with a SOCK_SEQPACKET socket. The directory of @path is locked until @ret_lock_fd
 * is closed, so that there is one such process; a socket that one left behind is replaced. Both
 * descriptors are the caller's.
 *
 * Return: 0; -EWOULDBLOCK if another process serves there; or another negative errno.
 */
_must_check_ int serve_listen(const char *path, int *ret_fd, int *ret_lock_fd);

/* Say to the service manager, if there is one, that ptd can connect: sd_notify(3). */
void serve_say_ready(void);
