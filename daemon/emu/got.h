/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Got
 *
 * Replaces a library function that the main program calls. QEMU 7.2 does not notify plugins when a
 * signal kills the recorded program, but it then calls kill(), which it calls nowhere else. Without
 * noticing that call, the plugin would lose the last instructions before each crash.
 */

#include "base/base.h"

/*
 * Redirect the main program's calls of the library function @name to @function.
 *
 * Return: 0; -ENOENT if the main program does not call it; or another negative errno.
 */
_must_check_ int got_replace(const char *name, void (*function)(void));
