/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Got
 *
 * Takes the place of a library function that the main program calls. QEMU 7.2 tells no plugin when
 * a signal kills the recorded program, but it ends it by a call of kill(), its only one. To miss
 * that would be to lose the last instructions before each crash.
 */

#include "base/base.h"

/*
 * Let the main program's calls of the library function @name go to @function.
 *
 * Return: 0; -ENOENT if it does not call it; or negative errno.
 */
_must_check_ int got_replace(const char *name, void (*function)(void));
