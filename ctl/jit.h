/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * JIT
 *
 * What runtimes must be told so that they write down the names of the code that they make, for
 * ptctl record --jit. ptd-runtimes(7) says what each of them writes.
 */

#include "base/base.h"

/*
 * Tell all runtimes that take it by their environment, which the program and what it starts
 * inherit, and PHP by its arguments; say what was set for the program, if it is a runtime that is
 * known, and else for all.
 *
 * Return: 0 and the command to run, an array that the caller frees, of strings that are @command's
 *         or constant; or -ENOMEM.
 */
_must_check_ int jit_prepare(char *const *command, char ***ret_command);
