/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Access
 *
 * Who may call which method of org.ptd.Recorder1 (ptd/control.h): one table, which is asked before
 * a method is called. What is not in the table is denied.
 */

#include <systemd/sd-bus.h>

#include "base/base.h"

/* What a client may see. */
enum access {
	ACCESS_NONE,
	ACCESS_OWN, /* what concerns its own user: it is anybody */
	ACCESS_ALL, /* all: root, the recorder's own user, or a member of the group */
};

/*
 * Check whether a client that has @access may call the method that @m calls. Messages to other
 * interfaces are none of ours.
 *
 * Return: 0 if it may; or negative errno and @error.
 */
_must_check_ int access_check(sd_bus_message *m, enum access access, sd_bus_error *error);
