/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Helper process
 *
 * A process that does a part of ptd's work with rights of its own: it listens at a socket, and ptd
 * is its client. Under a service manager the helper is a unit; otherwise ptd starts it. A helper
 * that is not there is said once, and ptd goes on without it.
 */

#include <stdbool.h>
#include <sys/types.h>
#include <sys/un.h>

#include "base/base.h"

struct helper {
	const char *name;    /* "keeper": its socket is NAME/socket, its program ptd-NAME */
	const char *without; /* what is lost without it, for the log; NULL: that is not said */
	struct sockaddr_un address;
	pid_t pid; /* of the process that was started; 0: none */
	int fd;    /* of the connection; -1: none */
	bool said; /* that it is not there */
};

/* Set @helper to the one whose socket is in @runtime_dir. Return: 0 or -ENAMETOOLONG. */
_must_check_ int helper_init(struct helper *helper, const char *runtime_dir, const char *name,
			     const char *without);

/*
 * Connect to the process.
 *
 * @patience_s: for how many seconds sending, receiving and connecting may wait each; 0: they do
 *              not wait
 *
 * Return: 0; -ENOENT or -ECONNREFUSED if the process does not run; -EAGAIN if it would take too
 *         long; or another negative errno.
 */
_must_check_ int helper_connect(struct helper *helper, unsigned patience_s);

/* Return: whether @error, of helper_connect(), says that ptd is to start the process: it does not
 *         run, and there is no service manager. */
bool helper_is_to_start(int error);

/* Start the process unless the one that was started still runs, and make the directories of its
 * socket. The program is the one beside this one, or the one that is installed. The process listens
 * soon, not yet when this returns. Return: 0, or negative errno. */
_must_check_ int helper_start(struct helper *helper);

/* Connect to the process, which is started if need be. This waits until the process listens.
 * Return: as helper_connect(). */
_must_check_ int helper_start_and_connect(struct helper *helper, unsigned patience_s);

/* The connection is of no use any more: close it, and log the error unless that was said. */
void helper_leave(struct helper *helper, int error);

/* Return: whether the process that was started, if any, has ended. */
bool helper_has_ended(struct helper *helper);
