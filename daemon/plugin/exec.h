/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Exec
 *
 * Calls of execve and execveat by a recorded program. QEMU would let the kernel execute the new
 * program directly, and it would not be recorded. So this module finds out which program the kernel
 * would execute, and executes QEMU again on that program. Calls for which that is not possible are
 * left to the kernel: they fail as they should, or succeed without being recorded.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "daemon/plugin/fdholder.h"
#include "daemon/plugin/target.h"
#include "util/execfile.h"
#include "util/vec.h"

/* How the plugin was started, to start the next QEMU in the same way. */
struct exec_self {
	char *qemu;   /* absolute path of the emulator */
	char *plugin; /* path of this plugin, escaped for QEMU's option */
	struct target target;
	char *const *program; /* borrowed: path of the running program, for /proc/self/exe */
};

/* A list of strings, all owned. */
struct exec_strings {
	VEC(char *) list;
};

struct exec {
	const struct exec_self *self; /* borrowed */
	char *path;                   /* of an ELF program, at the end of all scripts */
	enum execfile_kind kind;      /* of the program */
	char *comm;                   /* name of the process in the kernel; NULL: that of @path */
	struct exec_strings argv;     /* at least one */
	struct exec_strings envp;
};

/*
 * Find out which program a call of execve, or with @at of execveat, executes.
 *
 * Return: 0; EXEC_FAILS if the call will fail; EXEC_UNSEEN if the program cannot be recorded, and
 *         @reterr_why, a constant, says why; or -ENOMEM. @ret_exec is set, and has to be
 *         deinitialized, for 0 and EXEC_UNSEEN.
 */
_must_check_ int exec_init(struct exec *ret_exec, const struct exec_self *self, bool at,
			   const uint64_t args[static 6], const char **reterr_why);
enum {
	EXEC_FAILS = 1,
	EXEC_UNSEEN,
};
void exec_deinit(struct exec *exec);

/*
 * Execute QEMU on the program. @pool_fd is the pool's descriptor, @options are further options of
 * the plugin ("key=value,…").
 *
 * Return: negative errno, only on failure.
 */
_must_check_ int exec_run(const struct exec *exec, int pool_fd, const char *options);
