/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Descriptor holder
 *
 * Holds the pool's descriptor for the next program that this process executes. Programs close
 * descriptors that they did not open, count open ones, and expect theirs to be the lowest free
 * ones. So a thread with its own descriptor table, in which nothing else is, holds the descriptor.
 * The kernel lets a process reach the tables of its own threads through /proc, even if it has
 * changed its user.
 */

#include <sys/types.h>

#include "base/base.h"

struct fdholder {
	pid_t tid; /* of the thread; 0: there is none */
	int fd;    /* in its table */
};

/*
 * Start the thread, which holds a copy of @fd. The thread ends with the process. A forked child has
 * no such thread.
 *
 * Return: 0; or negative errno.
 */
_must_check_ int fdholder_start(struct fdholder *fdholder, int fd);

/* Return: a copy of the descriptor in the caller's table, close-on-exec, which the caller closes;
 *         or negative errno. */
_must_check_ int fdholder_borrow(const struct fdholder *fdholder);
