/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Interface
 *
 * The methods of org.ptd.Recorder1 (ptd/control.h): reads the arguments of a call, asks the
 * recorder, and writes the reply.
 */

#include <systemd/sd-bus.h>

#include "base/base.h"
#include "daemon/control/recorder.h"
#include "daemon/control/waiters.h"
#include "daemon/proc/caller.h"

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

/* Offer the interface on a connection. @peer is borrowed until the connection is closed. Return: 0,
 * or negative errno. */
_must_check_ int interface_attach(sd_bus *bus, struct interface_peer *peer);
