/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* ptctl rm */

#include "base/log.h"
#include "ctl/client.h"
#include "ctl/verb.h"

int verb_rm(const struct context *context, int argc, char **argv)
{
	_cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
	int r;

	if (argc < 2)
		return log_as(EXIT_USAGE, "rm: which snapshot? See ptctl rm --help");
	r = client_connect(context->socket, &bus);
	for (int i = 1; r == EXIT_OK && i < argc; i++) {
		_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;

		r = client_call(bus, "RemoveSnapshot", &reply, "s", argv[i]);
	}
	return r;
}
