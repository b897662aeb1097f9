/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Creator
 *
 * A process of its own that creates and opens files in one directory, for a decoder that is
 * confined and may open none to write to it. It is told nothing but names in that directory, and is
 * confined itself.
 */

#include <sys/types.h>

#include "base/base.h"

struct creator {
	pid_t pid;
	int socket; /* see util/outdir.h */
};

/*
 * Start it, before anything foreign was read, for the directory @dir_fd, which stays the caller's.
 *
 * Return: 0, or negative errno.
 */
_must_check_ int creator_start(int dir_fd, struct creator *ret_creator);

/* End it, when other descriptors of its socket are closed; one all zero was never started. */
void creator_stop(struct creator *creator);
