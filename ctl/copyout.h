/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Copy out
 *
 * Copies a snapshot out of the recorder's spool, through the descriptor of its directory and with
 * the caller's own rights. Functions say on stderr what went wrong.
 */

#include <systemd/sd-bus.h>

#include "base/base.h"

/*
 * Read the one option that verbs with a result have: -o DIR. @ret_output stays as it is without.
 *
 * Return: index of the first argument that is no option, or -EINVAL.
 */
_must_check_ int copyout_parse_output(const char *verb, int argc, char **argv,
				      const char **ret_output);

/* May a snapshot be copied to @directory: is it absent and can it be made, or is it empty; and is
 * there room for the smallest of snapshots? Return: an exit status. */
_must_check_ int copyout_check(const char *directory);

/* Copy the snapshot @id to @directory, which is absent or empty: all of it is on the disk then, or
 * nothing is there. Return: an exit status. */
_must_check_ int copyout_snapshot(sd_bus *bus, const char *id, const char *directory);
