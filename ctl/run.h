/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Run
 *
 * Runs a program as the calling user: under QEMU with the plugin that records it, or as it is.
 * Signals that somebody sends to us are passed on to it; those of the terminal reach it anyway.
 */

#include <sys/types.h>

#include "base/base.h"

struct program;

struct run {
	const char *qemu; /* path of the emulator for it */
	const char *plugin;
	int pool_fd; /* borrowed */
	const struct program *program;
};

/*
 * Run it until it ends.
 *
 * Return: 0, and @ret_status is as of waitpid(), @ret_pid its process ID; or negative errno if QEMU
 *         could not be executed, or -ECHILD if its status cannot be had.
 */
_must_check_ int run_program(const struct run *run, pid_t *ret_pid, int *ret_status);

/* The same of the file @path, without QEMU; @argv is ended by NULL. */
_must_check_ int run_native(const char *path, char **argv, pid_t *ret_pid, int *ret_status);
