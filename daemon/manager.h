/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Manager
 *
 * The owner of everything in the daemon: the event loop, the source, the intake of task records,
 * the object store, the spool, the queue of snapshots and the control socket. Everything except
 * writing snapshots (daemon/snapshotjob.h) happens in its thread.
 */

#include "base/base.h"
#include "daemon/control/recorder.h"

struct config;
struct manager;

struct manager_options {
	const struct config *config; /* borrowed for the call, as are the next two */
	const char *runtime_dir;
	const char *state_dir;
	bool until_eof; /* stop when standard input ends */

	/* Read the settings again: called on SIGHUP and when a client asks for it. Return: 0; or
	 * negative errno, and the reason has been logged. */
	int (*load_config)(struct config *ret_config, void *userdata);
	void *userdata;
};

/*
 * Make everything ready, and listen for clients.
 *
 * Return: 0; or negative errno, and the reason has been logged.
 */
_must_check_ int manager_new(const struct manager_options *options, struct manager **ret_manager);
struct manager *manager_free(struct manager *manager);

DEFINE_CLEANUP(struct manager *, manager_free);

/* Serve clients until SIGTERM or SIGINT, or until standard input ends, if that is asked for. SIGHUP
 * reads the settings again. Return: 0, or negative errno. */
_must_check_ int manager_run(struct manager *manager);

/* Return: the operations for the control interface, valid as long as the manager lives. */
struct recorder manager_recorder(struct manager *manager);
