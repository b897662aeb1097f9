/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Sandbox
 *
 * A process that decodes foreign bytes needs to read some files and to write to outputs that are
 * open already, and nothing else. After sandbox_enter() it
 *
 *	- makes only the system calls that decoding needs, with the arguments that decoding needs:
 *	  it opens no file for writing and creates none, makes no memory executable, makes and
 *	  signals no process, raises no limit, and asks a terminal only for its size; threads it
 *	  makes only if that was asked for;
 *	- opens files only below the roots (Landlock, Linux 5.13);
 *	- has no capability except the one to read other users' files and, if it creates files,
 *	  the one to write them, if it had these;
 *	- gains no privileges.
 *
 * The filter lists the system calls that are allowed, with their arguments. A list of forbidden
 * calls would miss one, such as ioctl(TIOCSTI), which types into the caller's shell.
 *
 * A filter of system calls does not see the names of files, so it cannot say in which directory a
 * file may be created; and not every kernel has Landlock. Therefore the process that decodes
 * creates nothing at all; a second one does (decoder/cmd/creator.h).
 *
 * Source: seccomp(2), landlock(7), prctl(2) PR_SET_NO_NEW_PRIVS, capabilities(7).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

/* A file, or a directory and all files below it. A root that does not exist is left out. */
struct sandbox_root {
	const char *path; /* NULL: the root is open at @fd */
	int fd;           /* borrowed; only if @path is NULL */
	bool writable;    /* if sandbox.creates: files may be created, written and renamed in it,
			   * and directories made */
};

struct sandbox {
	const struct sandbox_root *roots;
	size_t n_roots;
	bool creates; /* files may be created and written below the writable roots */
	bool threads; /* threads may be started; they are confined, too */

	/* In bytes; 0: no limit is set. */
	uint64_t memory_max; /* of the address space */
	uint64_t file_max;   /* of each file that is written to */
};

/*
 * Enter the sandbox; the process cannot leave it. On a kernel without Landlock the process can
 * still read all files that its user may read.
 *
 * Return: 0, or negative errno.
 */
_must_check_ int sandbox_enter(const struct sandbox *sandbox);
