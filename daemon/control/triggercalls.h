/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Trigger calls
 *
 * The methods of org.ptd.Recorder1 (ptd/control.h) that are about triggers.
 */

#include <systemd/sd-bus.h>

int triggercalls_add(sd_bus_message *m, void *userdata, sd_bus_error *error);
int triggercalls_remove(sd_bus_message *m, void *userdata, sd_bus_error *error);
int triggercalls_list(sd_bus_message *m, void *userdata, sd_bus_error *error);
