/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What is done to snapshots that are there: ptctl keep and ptctl rm. */

#include "base/log.h"
#include "ctl/client.h"
#include "ctl/verb.h"

/* Call the method for each snapshot. @keep: its argument behind the id, if @types has one */
static int call_for_each(const struct context *context, const char *verb, char **ids,
			 const char *method, const char *types, int keep)
{
	_cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
	int r;

	if (!*ids)
		return log_as(EXIT_USAGE, "%s: which snapshot? See ptctl %s --help", verb, verb);
	r = client_connect(context->socket, &bus);
	for (; r == EXIT_OK && *ids; ids++) {
		_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;

		r = client_call(bus, method, &reply, types, *ids, keep);
	}
	return r;
}

int verb_keep(const struct context *context, int argc, char **argv)
{
	bool release = false;
	const struct verb_option options[] = { { "release", .flag = &release } };
	const int first = verb_parse(argc, argv, options, ARRAY_LEN(options), true);

	return first < 0
		   ? EXIT_USAGE
		   : call_for_each(context, "keep", argv + first, "KeepSnapshot", "sb", !release);
}

int verb_rm(const struct context *context, int argc, char **argv)
{
	return call_for_each(context, "rm", argv + 1, "RemoveSnapshot", "s", false);
}
