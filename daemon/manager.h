/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Manager
 *
 * The one owner: event loop, source, intake of task records, objects, spool, jobs and the control
 * socket. Everything but the writing of snapshots (daemon/work.h) happens in its thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "daemon/source.h"

struct caller;
struct config;
struct job;
struct jobs;
struct manager;
struct scope;
struct spool;

struct manager_options {
	const struct config *config; /* borrowed for the call, as are the next two */
	const char *runtime_dir;
	const char *state_dir;

	/* On SIGHUP, and for manager_reload(): read the settings again, log why if that fails.
	 * Return: 0, or negative errno. */
	int (*load_config)(struct config *ret_config, void *userdata);
	void *userdata;
};

/* What there is to say about the recorder. */
struct manager_status {
	const char *source; /* borrowed */
	uint32_t n_cpus;    /* that are there to be recorded */
	struct source_status cpus;
	bool recording; /* something is being written to the rings */
	uint64_t sideband_bytes, sideband_max, sideband_lost;
	size_t n_objects;
	unsigned n_pending; /* snapshots being written or waiting */
};

/*
 * Make everything ready and listen.
 *
 * Return: 0; or negative errno, and what failed has been logged.
 */
_must_check_ int manager_new(const struct manager_options *options, struct manager **ret_manager);
struct manager *manager_free(struct manager *manager);

DEFINE_CLEANUP(struct manager *, manager_free);

/* Serve until SIGTERM or SIGINT; SIGHUP has the settings read again. Return: 0, or negative
 * errno. */
_must_check_ int manager_run(struct manager *manager);

/* For the control interface. */

struct manager_status manager_status(struct manager *manager);

/* Both borrowed. */
struct spool *manager_spool(struct manager *manager);
const struct jobs *manager_jobs(struct manager *manager);

/*
 * The software source's pool, as a descriptor that stays the manager's. Task records are drained
 * from now on.
 *
 * Return: 0; -EOPNOTSUPP if the source is not the software one.
 */
_must_check_ int manager_open_source(struct manager *manager, int *ret_fd);

/*
 * Give hardware up to others, or take it again.
 *
 * Return: 0; -EOPNOTSUPP if the source is not hardware; -EBUSY if a snapshot is being copied.
 */
_must_check_ int manager_pause(struct manager *manager, bool pause);

/* Queue a snapshot of what is in @scope, for @caller. @ret_id is the manager's until the next call.
 * Return: 0, -EBUSY, or negative errno. */
_must_check_ int manager_take_snapshot(struct manager *manager, const struct scope *scope,
				       const struct caller *caller, const char **ret_id);

/* Remove a snapshot. Return: 0; -ENOENT; -EPERM if it is kept; or another negative errno. */
_must_check_ int manager_remove_snapshot(struct manager *manager, const char *id);

/* Read the settings again, as for SIGHUP, and log that @caller asked for it. Return: 0; or negative
 * errno: they stay as they are, and the log says why. */
_must_check_ int manager_reload(struct manager *manager, const struct caller *caller);
