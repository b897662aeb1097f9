/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Descriptor holder
 *
 * Keeps the pool's descriptor for the next program of this process. Programs close what they did
 * not open, count what is open, and expect their own descriptors to be the lowest free ones; so it
 * is held by a thread that has a table of descriptors of its own, with nothing else in it. The
 * kernel lets a process reach its own threads' tables through /proc, whoever it has become.
 */

#include <sys/types.h>

#include "base/base.h"

struct fdholder {
	pid_t tid; /* of the thread; 0: there is none */
	int fd;    /* in its table */
};

/*
 * Start the thread, which takes over a copy of @fd. It ends with the process, and a forked child
 * does not have it.
 *
 * Return: 0; or negative errno.
 */
_must_check_ int fdholder_start(struct fdholder *fdholder, int fd);

/* Return: the descriptor, close-on-exec, in the caller's table, who closes it; or negative
 *         errno. */
_must_check_ int fdholder_borrow(const struct fdholder *fdholder);
