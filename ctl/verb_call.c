/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What verbs have in common; and those that only call a method: ptctl pause, resume, reload. */

#include <errno.h>

#include "base/log.h"
#include "ctl/client.h"
#include "ctl/show.h"
#include "ctl/verb.h"
#include "util/number.h"

int verb_parse_number(const char *verb, const char *what, const char *text, uint32_t max,
		      uint32_t *ret_number)
{
	uint64_t n;

	if (number_parse(text, max, &n) < 0 || n == 0)
		return log_as(-EINVAL, "%s: \"%s\" is no %s", verb, text, what);
	*ret_number = (uint32_t)n;
	return 0;
}

int verb_call(const struct context *context, int argc, char **argv, const char *method,
	      int (*print)(sd_bus_message *reply))
{
	_cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	int r;

	if (argc > 1)
		return log_as(EXIT_USAGE, "%s: unexpected argument \"%s\"", argv[0], argv[1]);
	r = client_connect(context->socket, &bus);
	if (r == EXIT_OK)
		r = client_call(bus, method, &reply, "");
	if (r != EXIT_OK || !print)
		return r;
	return context->json ? show_reply(stdout, reply, method) : print(reply);
}

int verb_pause(const struct context *context, int argc, char **argv)
{
	return verb_call(context, argc, argv, "Pause", NULL);
}

int verb_resume(const struct context *context, int argc, char **argv)
{
	return verb_call(context, argc, argv, "Resume", NULL);
}

int verb_reload(const struct context *context, int argc, char **argv)
{
	return verb_call(context, argc, argv, "Reload", NULL);
}
