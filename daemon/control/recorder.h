/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Recorder
 *
 * What the control interface asks of the daemon, as a table of operations, so that the interface
 * knows nothing of the manager, who implements it. All is called in the event loop's thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/source/source.h"

struct caller;
struct jobs;
struct scope;
struct spool;

/* The state of the daemon, as GetStatus and systemctl show it. */
struct recorder_status {
	const char *source; /* borrowed */
	uint32_t n_cpus;    /* that are there to be recorded */
	struct source_status cpus;
	bool recording; /* something is being written to the rings */
	uint64_t sideband_bytes, sideband_max, sideband_lost;
	size_t n_objects;
	unsigned n_pending; /* snapshots being written or waiting */
};

/* Each operation takes the recorder's @userdata. */
struct recorder_ops {
	struct recorder_status (*status)(void *userdata);

	/*
	 * Give out the software source's pool, as a descriptor that stays the recorder's. Task
	 * records are drained from now on.
	 *
	 * Return: 0; -EOPNOTSUPP if the source is not the software one; or negative errno.
	 */
	int (*open_pool)(void *userdata, int *ret_fd);

	/*
	 * Give the hardware up to others, or take it again.
	 *
	 * Return: 0; -EOPNOTSUPP if the source is not hardware; -EBUSY if a snapshot is being
	 * copied; or another negative errno.
	 */
	int (*pause)(void *userdata, bool pause);

	/*
	 * Queue a snapshot of what is in @scope, for @caller. @ret_id is the recorder's until the
	 * next call.
	 *
	 * Return: 0; -EBUSY if too many wait; or another negative errno.
	 */
	int (*take_snapshot)(void *userdata, const struct scope *scope, const struct caller *caller,
			     const char **ret_id);

	/* Remove the snapshot @id. Return: 0; -ENOENT; -EPERM if it is kept; or another negative
	 * errno. */
	int (*remove_snapshot)(void *userdata, const char *id);

	/*
	 * Read the settings again, as for SIGHUP, and log that @caller asked for it.
	 *
	 * Return: 0; or negative errno: the settings stay as they are, and the log says why.
	 */
	int (*reload)(void *userdata, const struct caller *caller);
};

/* Everything in it is borrowed. */
struct recorder {
	const struct recorder_ops *ops;
	void *userdata;
	struct spool *spool;
	const struct jobs *jobs;
};
