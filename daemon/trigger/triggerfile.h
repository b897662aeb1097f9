/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Trigger file
 *
 * The triggers that survive a restart of the recorder, a line each, with tabs between the fields:
 *
 *	ID COUNT TAKEN INTERVAL DELAY UID COMM CONDITION
 *
 * Times are in ns. COMM is "-" for threads of any name. The condition, which comes last, has no
 * control characters.
 */

#include <stddef.h>

#include "base/base.h"
#include "daemon/trigger/triggers.h"

/*
 * Read the file at @path into @ret_states, TRIGGERS_MAX at most. A line that makes no sense is
 * logged and left out.
 *
 * Return: 0 and @ret_n, also if there is no such file; or negative errno.
 */
_must_check_ int triggerfile_read(const char *path, struct trigger_state *ret_states,
				  size_t *ret_n);

/* Replace the file; on failure the old one stays. Return: 0, or negative errno. */
_must_check_ int triggerfile_write(const char *path, const struct trigger_state *states, size_t n);
