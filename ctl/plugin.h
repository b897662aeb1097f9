/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Plugin
 *
 * Where ptd-emu.so is, the plugin under which QEMU runs what the software source records. It runs
 * with the rights of whoever calls ptctl, so it is the one that was installed with ptctl, whatever
 * the recorder at the other end of the socket may say.
 */

#include "base/base.h"

/*
 * $PTD_EMU_SO; or beside the program, as in a build tree; or in ../lib/ptd, as installed. The last
 * is named even if nothing is there.
 *
 * Return: 0, and @ret_path is absolute and the caller's to free; or negative errno.
 */
_must_check_ int plugin_find(char **ret_path);
