/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Run
 *
 * Runs a program as the calling user: under QEMU with the plugin that records it, or directly.
 * Signals that other processes send to ptctl are passed on to the program; those of the terminal
 * reach it anyway.
 */

#include <stdbool.h>
#include <sys/types.h>

#include "base/base.h"

struct program;

struct run {
	const char *qemu; /* path of the emulator for it */
	const char *plugin;
	int pool_fd;         /* borrowed */
	bool timing;         /* write MTC and CYC packets */
	const char *options; /* further ones of the plugin, ",key=value…"; or "" */
	const struct program *program;
};

/*
 * Run the program until it ends.
 *
 * Return: 0, its process ID, and its status as of waitpid(); -ECHILD if the status is not
 *         available; or another negative errno if QEMU could not be executed.
 */
_must_check_ int run_program(const struct run *run, pid_t *ret_pid, int *ret_status);

/* Run the file @path in the same way, without QEMU. @argv is ended by NULL. */
_must_check_ int run_native(const char *path, char **argv, pid_t *ret_pid, int *ret_status);

/* --- remote ----------------------------------------------------------------------------------- */

/*
 * Make the command that a shell of the other machine runs: "ptctl" and the arguments, each quoted
 * so that the shell leaves it as it is. @argv is ended by NULL.
 *
 * Return: the command, which the caller frees; NULL without memory.
 */
char *remote_command(char **argv);

/*
 * Run ptctl with the arguments @argv, which is ended by NULL, on @host ("[USER@]HOST[:PORT]").
 * @verb is the one among the arguments. Reports errors on standard error.
 *
 * Return: the exit status of ptctl there; EXIT_UNREACHABLE if ssh did not get that far.
 */
int remote_run(const char *host, const char *verb, char **argv);
