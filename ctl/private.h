/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Private recorder
 *
 * A ptd of the caller's own, for users who may not use the system's, and where none runs: it
 * records what ptctl executes, by PT if the kernel permits that to the caller and by software if
 * not, keeps everything below a temporary directory, and ends when ptctl does, however that ends.
 * The directory of a ptctl that was killed is removed by the next one.
 *
 * The directory is locked by an open descriptor, which ptd and its collector inherit. So nothing of
 * a private recorder runs any more once another process can lock its directory.
 *
 * The functions report errors on standard error.
 */

#include <stdbool.h>
#include <sys/types.h>

#include "base/base.h"

struct private_recorder {
	char *directory; /* NULL: there is no private recorder */
	char *socket;    /* path of its control socket */
	int lock_fd;     /* of the directory, which is locked */
	int life_fd;     /* ptd ends when this end of the pipe is closed */
	pid_t pid;
};

#define PRIVATE_RECORDER_NONE                          \
	(struct private_recorder)                      \
	{                                              \
		.lock_fd = -1, .life_fd = -1, .pid = 0 \
	}

/* Start one, which answers as soon as it is ready. @emulated: not by PT. Return: EXIT_OK, or
 * EXIT_FAILED. */
_must_check_ int private_recorder_start(bool emulated, struct private_recorder *ret_recorder);

/* End it, wait until it has ended, and remove what it wrote. */
void private_recorder_stop(struct private_recorder *recorder);

/* Something failed: print what the recorder has logged. */
void private_recorder_explain(const struct private_recorder *recorder);
