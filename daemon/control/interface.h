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
#include "daemon/control/access.h"
#include "daemon/control/recorder.h"
#include "daemon/proc/caller.h"
#include "util/vec.h"

struct job;
struct own_result;

/* The interface; all connections share one. */
struct interface {
	struct recorder recorder;
	VEC(sd_bus_message *) waiters; /* calls of WaitSnapshot and WaitOwn without a reply yet */
};

/* What the interface has for each connection, as long as the connection lives. */
struct interface_peer {
	struct interface *interface; /* borrowed */
	struct caller caller;
	enum access access; /* what the client may see */
};

/* Offer the interface on a connection. @peer is borrowed until the connection is closed. Return: 0,
 * or negative errno. */
_must_check_ int interface_attach(sd_bus *bus, struct interface_peer *peer);

/* Reply to the clients that wait for @job, which is done. */
void interface_job_done(struct interface *interface, const struct job *job);

/* Reply to the clients that wait for the own snapshot @id, which is done. */
void interface_own_done(struct interface *interface, const char *id,
			const struct own_result *result);

/* Return: whether a call on that connection has no reply yet. */
bool interface_waits(const struct interface *interface, const sd_bus *bus);

/* Forget the calls on that connection, which is closed. */
void interface_forget(struct interface *interface, const sd_bus *bus);

void interface_deinit(struct interface *interface);
