/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Outdir
 *
 * The one directory in which an output has its files. A process that is not confined opens them
 * itself; a confined one has a socket in the place of the directory's descriptor, and at the other
 * end a process that opens them for it (decoder/cmd/creator.h).
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"

#define OUTDIR_NAME_MAX 255

/* One SOCK_SEQPACKET message each. The answer has the file as a descriptor with it. */
struct outdir_question {
	uint8_t is_new;
	char name[OUTDIR_NAME_MAX + 1]; /* ends with a NUL */
};

struct outdir_answer {
	int32_t r; /* 0, or negative errno */
};

/* Return: whether @name can only be a file in the directory itself: no path, and not hidden. */
bool outdir_is_name(const char name[static OUTDIR_NAME_MAX + 1]);

/*
 * Open a regular file to write to it, in the directory @dir_fd itself.
 *
 * @is_new: create it, which fails if anything has that name; else it is there, and is not emptied
 *
 * Return: the descriptor, which the caller closes; or negative errno.
 */
_must_check_ int outdir_open_here(int dir_fd, const char *name, bool is_new);

/* The same, where @fd is the directory, or the socket of the process that opens it. */
_must_check_ int outdir_open(int fd, const char *name, bool is_new);
