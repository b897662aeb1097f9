/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Output directory
 *
 * The one directory in which an output has its files, directly or in directories there, which are
 * made when the first file in them is created. A process that is not confined opens them itself. A
 * confined process has a socket in the place of the directory's descriptor, and the process at the
 * other end opens them for it (decoder/cmd/creator.h).
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"

#define OUTDIR_NAME_MAX  255
#define OUTDIR_DEPTH_MAX 6 /* parts of a name */

/* What is asked for. */
enum outdir_what {
	OUTDIR_OPEN,
	OUTDIR_CREATE,
	OUTDIR_RENAME,
};

/* The messages, each a packet of a SOCK_SEQPACKET socket. A file comes with the answer. */
struct outdir_question {
	uint8_t what;
	char name[OUTDIR_NAME_MAX + 1];     /* ends with a NUL */
	char new_name[OUTDIR_NAME_MAX + 1]; /* of OUTDIR_RENAME; likewise */
};

struct outdir_answer {
	int32_t r; /* 0, or negative errno */
};

/*
 * Return: whether @name is that of a file in the directory itself, FILE, or in directories there,
 *         DIRECTORY/…/FILE, of at most OUTDIR_DEPTH_MAX parts, and nothing in it is hidden.
 */
bool outdir_is_name(const char name[static OUTDIR_NAME_MAX + 1]);

/*
 * Open the regular file @name in the directory @dir_fd for reading and writing.
 *
 * @is_new: create the file, which fails if anything has that name, and the directories that its
 *	name has; otherwise the file must exist, and is not truncated
 *
 * Return: the descriptor, which the caller closes; or negative errno.
 */
_must_check_ int outdir_open_here(int dir_fd, const char *name, bool is_new);

/* The same, where @fd is the directory, or the socket to the process that opens the file. */
_must_check_ int outdir_open(int fd, const char *name, bool is_new);

/*
 * Give the file @name in the directory @dir_fd the name @new_name, which no other file there has.
 *
 * Return: 0; -EEXIST; or another negative errno.
 */
_must_check_ int outdir_rename_here(int dir_fd, const char *name, const char *new_name);

/* The same, where @fd is the directory, or the socket to the process that renames the file. */
_must_check_ int outdir_rename(int fd, const char *name, const char *new_name);
