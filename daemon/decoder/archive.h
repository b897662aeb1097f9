/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Archive
 *
 * What ptdecode makes is a directory in some formats, and a user reads the output from a pipe. So
 * ptdecode makes the directory below one that nobody else can open, and tar(1) writes what is in it
 * to the pipe.
 */

#include <limits.h>

#include "base/base.h"

struct archive {
	char dir[PATH_MAX];  /* "": there is none */
	char made[PATH_MAX]; /* in it: what ptdecode is to make */
};

/* Make the directory. Return: 0, or negative errno. */
_must_check_ int archive_init(struct archive *archive);

/* Remove it, with all that is in it. */
void archive_deinit(struct archive *archive);
