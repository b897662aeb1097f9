/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Sandbox
 *
 * What decodes foreign bytes needs to read some files and to write its output, and nothing else.
 * After sandbox_enter() this process and what it starts can open files only below the roots; it
 * cannot gain privileges, execute a program, make a socket, or look into other processes.
 *
 * Source: landlock(7), prctl(2) PR_SET_NO_NEW_PRIVS, seccomp(2).
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/base.h"

/* A file, or a directory and all below it. One that does not exist is left out. */
struct sandbox_root {
	const char *path;
	bool writable; /* files and directories may be made and written in it */
};

/*
 * Enter it, for good. A kernel without Landlock (before 5.13) leaves all files to the process's own
 * rights.
 *
 * Return: 0, or negative errno.
 */
_must_check_ int sandbox_enter(const struct sandbox_root *roots, size_t n_roots);
