/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Plugin
 *
 * Finds ptd-emu.so, the plugin with which QEMU records a program for the software source. The
 * plugin runs with the rights of the user who calls ptctl, so ptctl uses the plugin that was
 * installed with it and never one that the recorder names.
 */

#include "base/base.h"

/*
 * Find the plugin: $PTD_EMU_SO; or else the file beside ptctl, as in a build tree; or else the one
 * in ../lib/ptd, even if that does not exist.
 *
 * Return: 0 and @ret_path, which is absolute and which the caller frees; or negative errno.
 */
_must_check_ int plugin_find(char **ret_path);
