/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Remote
 *
 * A verb on another machine: ssh(1) runs ptctl there, with the rights of the user who logs in.
 */

#include "base/base.h"

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
