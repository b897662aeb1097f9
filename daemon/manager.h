/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Manager
 *
 * The owner of everything in the daemon: the event loop, the source, the intake of task records,
 * the object store, the spool, the queue of snapshots and the control socket. Everything except
 * writing snapshots (daemon/snapshotjob.h) happens in its thread.
 *
 * Trust
 *
 * Who is believed about what, in the whole daemon.
 *
 * A client. The kernel says who is at the other end of the control socket: root, ptd's own user and
 * members of group ptd may ask for everything, and others for nothing (daemon/control/server.h). No
 * method takes a path to write to, and everybody must be allowed to read the file of a trigger.
 *
 * The kernel's records. What they say of a process is true: who it is, what it mapped where. A path
 * in them is not, since a user may mount anything at it, in a namespace of their own; nor is a
 * build-id, which anybody can write into a file.
 *
 * Records of the software source. The recorded program writes them, and may overwrite the pool, so
 * each is a claim, its process and time included. What makes no sense is left out and counted. No
 * memory is read for them; a file is copied if the process has it mapped there, or if everybody may
 * read it (daemon/proc/mappedfile.h). A forged record may name another's process. That gains its
 * writer nothing: the copy is seen only by those who may see what every process executed.
 *
 * Files of users. Their bytes, sizes, owners and speed are whatever a user's file server says. The
 * collector opens them, under deadlines (daemon/helper/collector), and ptd waits for each user a
 * part of the time only (daemon/objects/asker.h). What users can fill is shared out between them
 * (daemon/share/share.h).
 *
 * The collector is believed about what it found, and the keeper about what it was given: the rings
 * and the state that it kept are checked for their form, as they may be an older ptd's.
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
