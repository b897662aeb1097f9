/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Executable files
 *
 * What the kernel finds in a file that is to be executed: a program, or a script and the
 * interpreter that its first line names.
 *
 * Source: Linux, fs/binfmt_script.c, fs/binfmt_elf.c.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/base.h"

#define EXECFILE_HEAD        256  /* bytes that the kernel looks at */
#define EXECFILE_LOADER_MAX  4096 /* PATH_MAX */
#define EXECFILE_SCRIPTS_MAX 5    /* interpreters of interpreters that the kernel follows */

enum execfile_kind {
	EXECFILE_X86_64, /* a program for 64-bit x86 */
	EXECFILE_I386,   /* a program for 32-bit x86 */
	EXECFILE_SCRIPT,
	EXECFILE_FOREIGN, /* an ELF file of another kind */
	EXECFILE_OTHER,   /* neither, or damaged */
};

struct execfile {
	enum execfile_kind kind;
	bool privileged; /* gives the program other rights than ours: set-user-ID and the like */
	char interpreter[EXECFILE_HEAD];  /* of a script */
	char argument[EXECFILE_HEAD];     /* its one argument; "" if there is none */
	char loader[EXECFILE_LOADER_MAX]; /* of a program: PT_INTERP; "" if it is static */
};

/* Return: the name of the QEMU emulator for such a program; NULL if it is no program for x86. */
static inline const char *execfile_emulator(enum execfile_kind kind)
{
	if (kind == EXECFILE_I386)
		return "qemu-i386";
	return kind == EXECFILE_X86_64 ? "qemu-x86_64" : NULL;
}

/* Says why a program that may be executed, but not read, cannot be recorded. */
#define EXECFILE_UNREADABLE "it may be executed, but not read"

/*
 * Return: a constant text that says why a program that the kernel may execute cannot be recorded;
 *         NULL if it can be, or the file is no program.
 */
const char *execfile_unseen(const struct execfile *file);

/* Return: 0 if the file may be executed by the caller; or negative errno. */
_must_check_ int execfile_check(const char *path);

/* Read the head of the file at @path. Return: 0; or negative errno if it cannot be read. */
_must_check_ int execfile_read(const char *path, struct execfile *ret_file);
