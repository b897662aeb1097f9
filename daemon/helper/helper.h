/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Helper process
 *
 * A process that does a part of ptd's work with rights of its own: it listens at a socket, and ptd
 * is its client. Under a service manager the helper is a unit; otherwise ptd starts it.
 */

#include <stdbool.h>
#include <sys/types.h>
#include <sys/un.h>

#include "base/base.h"

struct helper {
	const char *program; /* the name of its file: "ptd-keeper" */
	struct sockaddr_un address;
	pid_t pid; /* of the process that was started; 0: none */
};

/* Set @helper to the program whose socket is @name/socket in @runtime_dir. Return: 0 or
 * -ENAMETOOLONG. */
_must_check_ int helper_init(struct helper *helper, const char *runtime_dir, const char *name,
			     const char *program);

/*
 * Connect to the process.
 *
 * @patience_s: for how many seconds sending, receiving and connecting may wait each; 0: they do
 *              not wait
 *
 * Return: 0 and the descriptor, which is the caller's; -ENOENT or -ECONNREFUSED if the process does
 *         not run; -EAGAIN if it would take too long; or another negative errno.
 */
_must_check_ int helper_connect(const struct helper *helper, unsigned patience_s, int *ret_fd);

/* Return: whether it is for ptd to start the process: there is no service manager. */
bool helper_is_ours(void);

/* Start the process unless the one that was started still runs, and make the directories of its
 * socket. The program is the one beside this one, or the one that is installed. The process listens
 * soon, not yet when this returns. Return: 0, or negative errno. */
_must_check_ int helper_start(struct helper *helper);

/* Start the process as above, and connect to it. This waits until the process listens. Return: as
 * helper_connect(). */
_must_check_ int helper_start_and_connect(struct helper *helper, unsigned patience_s, int *ret_fd);

/* Return: whether the process that was started, if any, has ended. */
bool helper_has_ended(struct helper *helper);
