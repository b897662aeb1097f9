/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Program
 *
 * What the kernel would execute for a command: looked up in PATH, and through the interpreters that
 * scripts name in their first line. If that is a program that cannot be recorded, it is to be run
 * as it is, as one that a recorded program executes.
 */

#include <stddef.h>

#include "base/base.h"

struct program {
	char *file;           /* what is executed: a program or a script */
	char *path;           /* of the ELF file at the end of all scripts */
	const char *unseen;   /* why it cannot be recorded (a constant); NULL: it can */
	const char *emulator; /* name of the one that runs it (a constant), if it can */
	char **argv;          /* ended by NULL; argv[0] is what the program is told it is called */
	size_t n_argv;
};

/*
 * Find out what @command, ended by NULL, stands for; what is wrong is said on stderr.
 *
 * Return: 0, or an exit status: EXIT_NOT_FOUND or EXIT_CANNOT_EXECUTE.
 */
_must_check_ int program_init(struct program *program, char **command);
void program_deinit(struct program *program);

/* Look up @name in PATH. Return: 0 and @ret_path, which the caller frees; or negative errno. */
_must_check_ int program_find(const char *name, char **ret_path);
