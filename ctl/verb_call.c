/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Verbs that only call a method: ptctl pause, ptctl resume, ptctl reload. */

#include "base/log.h"
#include "ctl/client.h"
#include "ctl/verb.h"

static int call_method(const struct context *context, int argc, char **argv, const char *method)
{
	_cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	int r;

	if (argc > 1) {
		log_error("%s: unexpected argument \"%s\"", argv[0], argv[1]);
		return EXIT_USAGE;
	}
	r = client_connect(context->socket, &bus);
	if (r == EXIT_OK)
		r = client_call(bus, method, &reply, "");
	return r;
}

int verb_pause(const struct context *context, int argc, char **argv)
{
	return call_method(context, argc, argv, "Pause");
}

int verb_resume(const struct context *context, int argc, char **argv)
{
	return call_method(context, argc, argv, "Resume");
}

int verb_reload(const struct context *context, int argc, char **argv)
{
	return call_method(context, argc, argv, "Reload");
}
