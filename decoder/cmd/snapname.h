/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Snapname
 *
 * An input that is named as in ptctl, by a snapshot's id or as the latest snapshot, is found in the
 * recorder's state directory. The recorder is not asked and need not run.
 */

#include <stdbool.h>

#include "base/base.h"

/* Return: whether @input can be the name of a snapshot, and no file has that name. */
bool snapname_is(const char *input);

/*
 * Find the snapshot @name in the state directory @state_dir.
 *
 * Return: 0 and @ret_path; or negative errno and @reterr_message. The caller frees either.
 */
_must_check_ int snapname_find(const char *name, const char *state_dir, char **ret_path,
			       char **reterr_message);
