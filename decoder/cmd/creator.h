/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Creator
 *
 * A process of its own that creates, opens and renames files in one directory, and makes
 * directories for them there. The decoder needs it because the decoder is confined and may open no
 * file for writing. The creator receives only names in that directory from the decoder, and is
 * confined itself.
 */

#include <sys/types.h>

#include "base/base.h"

struct creator {
	pid_t pid;
	int socket; /* to the creator; owned; its messages are in decoder/util/outdir.h */
};

/*
 * Start the creator for the directory @dir_fd, which stays the caller's. This is done before
 * anything foreign is read.
 *
 * Return: 0, or negative errno.
 */
_must_check_ int creator_start(int dir_fd, struct creator *ret_creator);

/*
 * Close the socket and wait for the creator to end, which it does only when all other descriptors
 * of the socket are closed. A creator that is all zero was never started.
 */
void creator_stop(struct creator *creator);
