/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Program
 *
 * What the kernel would execute for a command: looked up in PATH, and through the interpreters that
 * scripts name in their first line.
 */

#include <stddef.h>

#include "base/base.h"

struct program {
	char *path;           /* of an ELF file */
	const char *emulator; /* name of the one that runs it (a constant) */
	char **argv;          /* ended by NULL; argv[0] is what the program is told it is called */
	size_t n_argv;
};

/*
 * Find out what @command, ended by NULL, stands for. Only a program for x86 is taken; what is wrong
 * is said on stderr.
 *
 * Return: 0, or an exit status: EXIT_NOT_FOUND or EXIT_CANNOT_EXECUTE.
 */
_must_check_ int program_init(struct program *program, char **command);
void program_deinit(struct program *program);

/* Look up @name in PATH. Return: 0 and @ret_path, which the caller frees; or negative errno. */
_must_check_ int program_find(const char *name, char **ret_path);
