/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Serving
 *
 * The main() of a helper process of ptd (daemon/helper/helper.h): it listens at its socket, says to
 * the service manager that ptd can connect, and serves. There is one such process for each socket.
 */

#include <sys/types.h>

#include "base/base.h"

struct serve_program {
	const char *name;  /* "collector", for messages */
	const char *usage; /* what --help prints */

	/* Serve the clients of @user. The function takes the socket, which listens. Return: 0, or
	 * negative errno. */
	int (*run)(int listen_fd, uid_t user);
};

/* The arguments are the path of the socket, and perhaps the name of the user whose processes are
 * served; without it, that is the user of this process. Return: the status with which to exit. */
_must_check_ int serve_main(int argc, char *const *argv, const struct serve_program *program);
