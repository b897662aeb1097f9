/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Own calls
 *
 * The methods of org.ptd.Recorder1 (ptd/control.h) by which a user who is not in the group has
 * decoded what his own programs ran.
 */

#include <systemd/sd-bus.h>

struct interface;
struct own_result;

int owncalls_take(sd_bus_message *m, void *userdata, sd_bus_error *error);
int owncalls_wait(sd_bus_message *m, void *userdata, sd_bus_error *error);

/* Reply to the clients that wait for the own snapshot @id, which is done. */
void owncalls_done(struct interface *interface, const char *id, const struct own_result *result);
