/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Copy out
 *
 * Copies a snapshot from the recorder's spool, with the rights of the caller, through a descriptor
 * of the snapshot's directory. The functions report errors on standard error.
 */

#include <pthread.h>
#include <stdbool.h>
#include <systemd/sd-bus.h>

#include "base/base.h"

/*
 * While ptctl works, a line on the terminal says what it does and for how many seconds by now. It
 * appears after the first second. Without a terminal there is none.
 */

struct waiting {
	const char *what; /* borrowed */
	bool is_shown;    /* a thread writes the line; the other members are for it */
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t ended;
	bool is_over;
};

/* Begin to show @what. The caller then works, and writes nothing to the terminal until the end. */
void waiting_begin(struct waiting *waiting, const char *what);

/* Remove the line. */
void waiting_end(struct waiting *waiting);

/* Check that a snapshot can be copied to @directory: that it is empty, or absent and can be made,
 * and that there is room for a small snapshot. Return: an exit status. */
_must_check_ int copyout_check(const char *directory);

/* Copy the snapshot @id to @directory, which is absent or empty. On success all files are on the
 * disk; on failure no file is left. Return: an exit status. */
_must_check_ int copyout_snapshot(sd_bus *bus, const char *id, const char *directory);
