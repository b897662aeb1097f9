/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Trace check
 *
 * ptdecode --check: does a drmemtrace directory obey every rule of its format?
 */

#include "base/base.h"

/*
 * Check the directory @dir. What breaks a rule is printed on standard output, one breach a line,
 * and behind that how much was checked.
 *
 * Return: 0; 1 if a rule is broken; or negative errno, after the error was logged.
 */
_must_check_ int tracecheck_run(const char *dir);
