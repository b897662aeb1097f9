/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Unpack
 *
 * Makes a directory of a tar archive that comes through a pipe, by tar(1). The functions report
 * errors on standard error.
 */

#include <stdbool.h>

#include "base/base.h"

struct unpack {
	const char *path; /* borrowed */
	bool is_new;      /* the directory was made for this */
};

/* Check that @directory can be made, or is empty. Nothing is changed. Return: an exit status. */
_must_check_ int unpack_check(const char *directory);

/*
 * Unpack the archive that @fd, which stays the caller's, gives into @directory, which is absent or
 * empty. An archive of no bytes is an empty directory.
 *
 * Return: an exit status; what was unpacked is there anyway: see unpack_undo().
 */
_must_check_ int unpack_from(int fd, const char *directory, struct unpack *ret_unpack);

/* Remove all that was unpacked. */
void unpack_undo(const struct unpack *unpack);
