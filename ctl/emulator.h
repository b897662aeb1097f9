/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Emulator
 *
 * Finds what records a program for the software source: QEMU, and the plugin for it. Both run with
 * the rights of the user who calls ptctl, so ptctl uses those that were installed with it and never
 * ones that the recorder names.
 */

#include "base/base.h"

/*
 * Find the emulator @name: the file in the folder qemu beside ptctl, as in a build tree; or else
 * the one in ../lib/ptd/qemu; or else the first one in PATH. It must load plugins, which QEMU of
 * Debian does not do since 9.1. Errors are reported on standard error.
 *
 * Return: 0 and @ret_path, which is absolute or relative to the working directory and which the
 *         caller frees; or negative errno.
 */
_must_check_ int emulator_find(const char *name, char **ret_path);

/*
 * The same, and no errors are reported.
 *
 * Return: as above, -ENOTSUP if it loads no plugins; @ret_path is set, and the caller's, also on
 *         failure if one was found.
 */
_must_check_ int emulator_probe(const char *name, char **ret_path);

/*
 * Find the plugin: $PTD_EMU_SO; or else the file beside ptctl, as in a build tree; or else the one
 * in ../lib/ptd, even if that does not exist.
 *
 * Return: 0 and @ret_path, which is absolute and which the caller frees; or negative errno.
 */
_must_check_ int emulator_find_plugin(char **ret_path);

/* The same, and the caller must be able to read it. Return: as above; @ret_path may be set also on
 * failure. */
_must_check_ int emulator_probe_plugin(char **ret_path);
