/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Beside
 *
 * Finds a file that is installed, or was built, together with the running program: by the place of
 * the program's own executable.
 */

#include <stddef.h>

#include "base/base.h"

enum {
	BESIDE_NOWHERE = 1, /* there is no such file */
};

/*
 * Find a file.
 *
 * @places: relative to the folder of the executable; they may begin with "../"
 * @mode: what must be allowed, as for access(2)
 *
 * Return: 0 and the absolute path of the first of @places where there is such a file;
 *         BESIDE_NOWHERE and the path of the last one; or negative errno. The caller frees the
 *         path.
 */
_must_check_ int beside_find(const char *const *places, size_t n_places, int mode, char **ret_path);
