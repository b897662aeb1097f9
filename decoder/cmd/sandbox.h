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
 *
 * Before that it closes what it inherited, finds out how much memory it needs, and starts helpers.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

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

/*
 * Close all descriptors but stdout, stderr, and those that one of the @n @paths names: "-"
 * (standard input), /dev/stdin, /dev/fd/N, or /proc/self/fd/N. If standard input is closed,
 * /dev/null takes its place. An element of @paths may be NULL. Before Linux 5.9 only standard input
 * can be closed.
 *
 * Return: 0, or negative errno.
 */
_must_check_ int inherit_only(const char *const *paths, size_t n);

/* --- budget ----------------------------------------------------------------------------------- */

/*
 * How much address space decoding may take. The limit stops foreign bytes from making the decoder
 * take all memory; no honest input needs more.
 */

/* In bytes, for all but the inputs: the decoder's tables, and code and debug files elsewhere. */
#define BUDGET_BASE (UINT64_C(16) << 30)

/*
 * In bytes, for each thread but the first: its stack, malloc()'s arena with what is in it, and what
 * is decoded ahead for it.
 */
#define BUDGET_THREAD (UINT64_C(1) << 30)

/*
 * Return: the size in bytes of the regular file @path, or of all regular files below the directory
 *         @path; 0 if it cannot be found out. A file with holes counts for at most a fixed multiple
 *         of the disk space that it takes up.
 */
uint64_t budget_size_of(const char *path);

/*
 * Return: the bytes of address space that inputs of @inputs bytes, temporary files of @spills bytes
 *         and @n_threads threads need.
 */
uint64_t budget_for(uint64_t inputs, uint64_t spills, size_t n_threads);

/* --- helper ----------------------------------------------------------------------------------- */

/*
 * A process of its own that does for the confined one what that may not do itself, and is asked
 * over a SOCK_SEQPACKET socket. One that is all zero was never started.
 */
struct helper {
	pid_t pid;
	int socket; /* to the helper; owned */
};

/*
 * Start a helper before anything foreign is read. It calls @serve with its end of the socket, and
 * ends when that returns.
 *
 * Return: 0, or negative errno.
 */
_must_check_ int helper_start(void (*serve)(int socket, void *userdata), void *userdata,
			      struct helper *ret_helper);

/*
 * Close the socket and wait for the helper to end, which it does only when all other descriptors of
 * the socket are closed.
 */
void helper_stop(struct helper *helper);
