/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Sandbox
 *
 * A process that decodes foreign bytes needs to read some files and to write to outputs that are
 * open already, and nothing else. After sandbox_enter() it
 *
 *	- makes only the system calls that decoding needs, with the arguments that it needs: no file
 *	  is opened to be written or created, no memory becomes executable, no process or thread is
 *	  made or signalled, no limit is raised, and a terminal can only be asked for its size;
 *	- opens files only below the roots (Landlock, Linux 5.13);
 *	- has no capability but that of reading files of others, if it had that;
 *	- gains no privileges.
 *
 * System calls are allowed by a list, with their arguments: a list of forbidden calls forgets
 * something, such as TIOCSTI, which types into the caller's shell.
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

/* A file, or a directory and all below it. One that does not exist is left out. */
struct sandbox_root {
	const char *path; /* or NULL, and it is open at: */
	int fd;
	bool writable; /* files may be made and written in it; of one that creates */
};

struct sandbox {
	const struct sandbox_root *roots;
	size_t n_roots;
	bool creates; /* files may be created and written, below the writable roots */

	/* In bytes; 0: no limit is set. */
	uint64_t memory_max; /* of the address space */
	uint64_t file_max;   /* of each file that is written to */
};

/*
 * Enter it, for good. A kernel without Landlock leaves all files that the process's user may read
 * to be read.
 *
 * Return: 0, or negative errno.
 */
_must_check_ int sandbox_enter(const struct sandbox *sandbox);
