/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A connection to ptd's control socket, for tools that say what ptctl does not. */

#include <stdio.h>
#include <stdlib.h>
#include <systemd/sd-bus.h>

#include "base/base.h"
#include "ptd/control.h"

/* Connect to the socket in $PTD_SOCKET, or to the usual one. Return: 0 and a connection that the
 * caller frees; or negative errno. */
_must_check_ static inline int controlbus_open(sd_bus **ret_bus)
{
	_cleanup_(sd_bus_unrefp) sd_bus *bus = NULL;
	const char *path = getenv("PTD_SOCKET");
	char address[256];
	int r;

	(void)snprintf(address, sizeof(address), "unix:path=%s",
		       path ? path : PTD_CONTROL_SOCKET_DEFAULT);
	r = sd_bus_new(&bus);
	if (r >= 0)
		r = sd_bus_set_address(bus, address);
	if (r >= 0)
		r = sd_bus_negotiate_fds(bus, true);
	if (r >= 0)
		r = sd_bus_start(bus);
	if (r < 0)
		return r;
	*ret_bus = TAKE(bus);
	return 0;
}
