/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* ptctl keep */

#include <getopt.h>

#include "base/log.h"
#include "ctl/client.h"
#include "ctl/verb.h"

/* Return: index of the first argument that is no option, or -EINVAL. */
static int parse_keep(int argc, char **argv, bool *release)
{
	static const struct option options[] = {
		{ "release", no_argument, NULL, 'r' },
		{},
	};
	int option;

	optind = 0; /* start over: main() has parsed options of its own */
	while ((option = getopt_long(argc, argv, "+", options, NULL)) >= 0) {
		if (option != 'r')
			return log_as(-EINVAL, "keep: see ptctl keep --help");
		*release = true;
	}
	return optind;
}

int verb_keep(const struct context *context, int argc, char **argv)
{
	_cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
	bool release = false;
	int first, r;

	first = parse_keep(argc, argv, &release);
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
