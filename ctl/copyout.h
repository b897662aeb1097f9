/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Copy out
 *
 * Copies a snapshot from the recorder's spool, with the rights of the caller, through a descriptor
 * of the snapshot's directory. The functions report errors on standard error.
 */

#include <systemd/sd-bus.h>

#include "base/base.h"

/* Check that a snapshot can be copied to @directory: that it is empty, or absent and can be made,
 * and that there is room for a small snapshot. Return: an exit status. */
_must_check_ int copyout_check(const char *directory);

/* Copy the snapshot @id to @directory, which is absent or empty. On success all files are on the
 * disk; on failure no file is left. Return: an exit status. */
_must_check_ int copyout_snapshot(sd_bus *bus, const char *id, const char *directory);
