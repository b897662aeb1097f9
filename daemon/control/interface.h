/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Interface
 *
 * The methods of org.ptd.Recorder1 (ptd/control.h): reads the arguments of a call, asks the
 * recorder, and writes the reply.
 */

#include <stdbool.h>
#include <systemd/sd-bus.h>

#include "base/base.h"
#include "daemon/control/recorder.h"
#include "daemon/proc/caller.h"
#include "util/vec.h"

struct job;

/*
 * Calls of methods that have no reply yet. Each waits for a snapshot, whose id is its first
 * argument.
 */

struct waiters {
	VEC(sd_bus_message *) calls; /* referenced */
};

void waiters_deinit(struct waiters *waiters);

/* Return: whether a call on that connection waits. */
bool waiters_has(const struct waiters *waiters, const sd_bus *bus);

/* Forget the calls on that connection, which is closed. */
void waiters_forget(struct waiters *waiters, const sd_bus *bus);

/* The interface; all connections share one. */
struct interface {
	struct recorder recorder;
	struct waiters waiters; /* calls of WaitSnapshot */
};

/* What the interface has for each connection, as long as the connection lives. */
struct interface_peer {
	struct interface *interface; /* borrowed */
	struct caller caller;
};

/* Reply to the clients that wait for @job, which is done. */
void interface_job_done(struct interface *interface, const struct job *job);

/* Offer the interface on a connection. @peer is borrowed until the connection is closed. Return: 0,
 * or negative errno. */
_must_check_ int interface_attach(sd_bus *bus, struct interface_peer *peer);
