/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Manager
 *
 * The one owner: event loop, source, intake of task records, objects, spool, jobs and the control
 * socket. Everything but the writing of snapshots (daemon/snapshotjob.h) happens in its thread.
 */

#include "base/base.h"
#include "daemon/control/recorder.h"

struct config;
struct manager;

struct manager_options {
	const struct config *config; /* borrowed for the call, as are the next two */
	const char *runtime_dir;
	const char *state_dir;

	/* On SIGHUP, and when a client asks: read the settings again, log why if that fails.
	 * Return: 0, or negative errno. */
	int (*load_config)(struct config *ret_config, void *userdata);
	void *userdata;
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

/* Return: what the control interface is served by, as long as the manager lives. */
struct recorder manager_recorder(struct manager *manager);
