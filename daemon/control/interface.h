/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Interface
 *
 * The methods of org.ptd.Recorder1 (ptd/control.h): what a call means, and how it is answered.
 */

#include <stdbool.h>
#include <systemd/sd-bus.h>

#include "base/base.h"
#include "daemon/control/recorder.h"
#include "daemon/proc/caller.h"
#include "util/vec.h"

struct job;

/* One for all connections. */
struct interface {
	struct recorder recorder;
	VEC(sd_bus_message *) waiters; /* calls of WaitSnapshot that are not answered yet */
};

/* One for each connection, as long as it. */
struct interface_peer {
	struct interface *interface; /* borrowed */
	struct caller caller;
	bool allowed; /* every method refuses others */
};

/* Offer the interface on a connection. @peer is borrowed until that is closed. Return: 0, or
 * negative errno. */
_must_check_ int interface_attach(sd_bus *bus, struct interface_peer *peer);

/* Answer those who wait for @job, which is done. */
void interface_job_done(struct interface *interface, const struct job *job);

/* Return: whether a call of that connection is to be answered yet. */
bool interface_waits(const struct interface *interface, const sd_bus *bus);

/* The connection is closed: forget its calls. */
void interface_forget(struct interface *interface, const sd_bus *bus);

void interface_deinit(struct interface *interface);
