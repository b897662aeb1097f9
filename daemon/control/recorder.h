/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Recorder
 *
 * The operations that the control interface asks of the daemon, as a table. The manager implements
 * them, and the interface does not depend on the manager. All operations are called in the event
 * loop's thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/share/share.h"
#include "daemon/source/source.h"

struct caller;
struct jobs;
struct scope;
struct spool;
struct triggers;

/* The state of the daemon, which GetStatus and systemctl show. */
struct recorder_status {
	const char *source; /* borrowed */
	uint32_t n_cpus;    /* to be recorded */
	struct source_status cpus;
	bool recording; /* something is being written to the rings */
	/* When the rings were made, on CLOCK_MONOTONIC: before this ptd was started, if they were
	 * taken over. */
	uint64_t rings_ns;
	uint64_t sideband_bytes, sideband_max, sideband_lost;
	size_t n_objects;
	unsigned n_pending; /* snapshots that are being written or wait */
	/* Snapshots since the daemon was started: written, not written because of an error, and
	 * removed to make room. */
	uint64_t n_taken, n_failed, n_removed;
};

/* What users share that can be refused to one of them. */
enum recorder_shared {
	RECORDER_OBJECTS,  /* bytes of copies to which no snapshot links */
	RECORDER_CODE,     /* bytes of code that programs handed over */
	RECORDER_JITDUMPS, /* processes whose jitdump is open */
	RECORDER_SIDEBAND, /* bytes of task records */
	_RECORDER_SHARED_MAX,
};

/* Each operation gets @userdata of struct recorder. */
struct recorder_ops {
	struct recorder_status (*status)(void *userdata);

	/* Get a copy of an account. */
	void (*get_share)(void *userdata, enum recorder_shared shared, struct share *ret_share);

	/*
	 * Get the descriptor, which is borrowed, of the pool of the software source. It is for a
	 * program that writes MTC and CYC packets if @timing is true. From now on task records are
	 * drained. A snapshot may leave out what was recorded before this call.
	 *
	 * Return: 0; -EOPNOTSUPP if the source is not the software one; or negative errno.
	 */
	int (*open_pool)(void *userdata, bool timing, int *ret_fd);

	/*
	 * Give the hardware to other programs, or take it again.
	 *
	 * Return: 0; -EOPNOTSUPP if the source is not hardware; -EBUSY if a snapshot is being
	 * copied; or another negative errno.
	 */
	int (*pause)(void *userdata, bool pause);

	/*
	 * Queue a snapshot of @scope for @caller. @ret_id is borrowed and valid until the next
	 * call.
	 *
	 * Return: 0; -EBUSY if too many wait; or another negative errno.
	 */
	int (*take_snapshot)(void *userdata, const struct scope *scope, const struct caller *caller,
			     const char **ret_id);

	/* Remove the snapshot @id. Return: 0; -ENOENT; -EPERM if it is kept; or another negative
	 * errno. */
	int (*remove_snapshot)(void *userdata, const char *id);

	/*
	 * Read the settings again, as on SIGHUP, and log that @caller asked for it.
	 *
	 * Return: 0; or negative errno, and the settings stay as they are and the reason has been
	 * logged.
	 */
	int (*reload)(void *userdata, const struct caller *caller);
};

/* What the control interface needs of the daemon. Everything in it is borrowed. */
struct recorder {
	const struct recorder_ops *ops;
	void *userdata;
	struct spool *spool;
	struct triggers *triggers;
	const struct jobs *jobs;
};
