/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Serving
 *
 * How a helper process of ptd (daemon/helper/helper.h) begins, listens at its socket, and says to
 * the service manager that ptd can connect.
 */

#include <sys/types.h>

#include "base/base.h"

/*
 * Begin a helper's main(), whose arguments are the path of its socket and perhaps the name of the
 * user whom it serves. It has open what is not its own, so other processes may not look into it.
 *
 * @usage: is printed if the arguments are wrong
 * @ret_user: the user that is named; or the one that this process runs as
 *
 * Return: 0, or the status with which to exit, and the reason was said.
 */
_must_check_ int serve_begin(int argc, char *const *argv, const char *usage, uid_t *ret_user);

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
