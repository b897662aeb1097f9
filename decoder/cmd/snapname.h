/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Snapname
 *
 * An input that is named as ptctl names it, by a snapshot's id or as the latest one, is found in
 * the recorder's state directory. The recorder is not asked: it need not run.
 */

#include <stdbool.h>

#include "base/base.h"

/* May @input be such a name, and is there no file of that name? */
bool snapname_is(const char *input);

/*
 * Find the snapshot @name in the state directory @state_dir.
 *
 * Return: 0, and @ret_path is the caller's; or negative errno, with @reterr_message, which the
 *         caller frees.
 */
_must_check_ int snapname_find(const char *name, const char *state_dir, char **ret_path,
			       char **reterr_message);
