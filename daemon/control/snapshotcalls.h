/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Snapshot calls
 *
 * The methods of org.ptd.Recorder1 (ptd/control.h) that take snapshots of all that is recorded, and
 * that find, keep and remove them.
 */

#include <systemd/sd-bus.h>

struct interface;
struct job;

int snapshotcalls_take(sd_bus_message *m, void *userdata, sd_bus_error *error);
int snapshotcalls_wait(sd_bus_message *m, void *userdata, sd_bus_error *error);
int snapshotcalls_list(sd_bus_message *m, void *userdata, sd_bus_error *error);
int snapshotcalls_open(sd_bus_message *m, void *userdata, sd_bus_error *error);
int snapshotcalls_remove(sd_bus_message *m, void *userdata, sd_bus_error *error);
int snapshotcalls_keep(sd_bus_message *m, void *userdata, sd_bus_error *error);

/* Reply to the clients that wait for @job, which is done. */
void snapshotcalls_done(struct interface *interface, const struct job *job);
