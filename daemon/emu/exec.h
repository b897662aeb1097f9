/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Exec
 *
 * A program calls execve or execveat. QEMU would let the kernel execute the new program itself, and
 * nothing would be seen of it any more; so it is found out what the kernel would do, and QEMU is
 * executed again, on that. Whatever cannot be done so is left to the call itself: it fails as it
 * should, or succeeds and is not recorded.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "daemon/emu/fdholder.h"
#include "daemon/emu/target.h"
#include "util/execfile.h"
#include "util/vec.h"

/* How the plugin came to be where it is, for the next QEMU. */
struct exec_self {
	char *qemu;   /* absolute path of the emulator */
	char *plugin; /* and of this plugin, as QEMU's option takes it */
	struct target target;
	char *const *program; /* borrowed: path of the program that runs, for /proc/self/exe */
};

/* A list of strings, all owned. */
struct exec_strings {
	VEC(char *) list;
};

struct exec {
	const struct exec_self *self; /* borrowed */
	char *path;                   /* of an ELF program, at the end of all scripts */
	enum execfile_kind kind;      /* of the program */
	char *comm;                   /* what the kernel would call the process; NULL: as @path */
	struct exec_strings argv;     /* at least one */
	struct exec_strings envp;
};

/*
 * Find out what a call of execve, or with @at of execveat, asks for.
 *
 * Return: 0; EXEC_FAILS if it will fail by itself, or is none of ours; EXEC_UNSEEN if it has to be
 * left alone, with the program in @exec and the reason in @reterr_why (a constant); or -ENOMEM. In
 * all but EXEC_FAILS and -ENOMEM @ret_exec is to be deinitialized.
 */
_must_check_ int exec_init(struct exec *ret_exec, const struct exec_self *self, bool at,
			   const uint64_t args[static 6], const char **reterr_why);
enum {
	EXEC_FAILS = 1,
	EXEC_UNSEEN,
};
void exec_deinit(struct exec *exec);

/*
 * Execute QEMU on it. @pool_fd is the pool's descriptor, @options what else the plugin is to be
 * told ("key=value,…").
 *
 * Return: only if that fails: negative errno.
 */
_must_check_ int exec_run(const struct exec *exec, int pool_fd, const char *options);
