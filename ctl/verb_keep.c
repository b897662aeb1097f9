/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* ptctl keep */

#include "base/log.h"
#include "ctl/client.h"
#include "ctl/verb.h"

int verb_keep(const struct context *context, int argc, char **argv)
{
	_cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
	bool release = false;
	const struct verb_option options[] = { { "release", .flag = &release } };
	int first, r;

	first = verb_parse(argc, argv, options, ARRAY_LEN(options), true);
	if (first < 0)
		return EXIT_USAGE;
	if (first == argc)
		return log_as(EXIT_USAGE, "keep: which snapshot? See ptctl keep --help");
	r = client_connect(context->socket, &bus);
	for (int i = first; r == EXIT_OK && i < argc; i++) {
		_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;

		r = client_call(bus, "KeepSnapshot", &reply, "sb", argv[i], !release);
	}
	return r;
}
