/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Program
 *
 * The program that the kernel would execute for a command: found in PATH, and through the
 * interpreters that scripts name in their first line. A program that cannot be recorded is to be
 * run without QEMU, as one that a recorded program executes.
 */

#include <stddef.h>

#include "base/base.h"

struct program {
	char *file;           /* the file to execute: a program or a script */
	char *path;           /* of the ELF file at the end of all scripts */
	const char *unseen;   /* why it cannot be recorded (a constant); NULL: it can */
	const char *emulator; /* name of the emulator for it (a constant), if it can be recorded */
	char **argv;          /* ended by NULL */
	size_t n_argv;
};

/*
 * Find the program for @command, which is ended by NULL. Errors are reported on standard error.
 *
 * Return: 0, or an exit status: EXIT_NOT_FOUND or EXIT_CANNOT_EXECUTE.
 */
_must_check_ int program_init(struct program *program, char **command);
void program_deinit(struct program *program);

/* Look up @name in PATH. Return: 0 and @ret_path, which the caller frees; or negative errno. */
_must_check_ int program_find(const char *name, char **ret_path);
