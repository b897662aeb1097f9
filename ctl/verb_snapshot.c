/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* ptctl snapshot */

#include <inttypes.h>
#include <stdio.h>

#include "base/log.h"
#include "ctl/client.h"
#include "ctl/fetch.h"
#include "ctl/show.h"
#include "ctl/verb.h"

int verb_snapshot(const struct context *context, int argc, char **argv)
{
	_cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	_cleanup_(client_snapshot_deinit) struct client_snapshot snapshot = {};
	char size[SHOW_SIZE_MAX];
	const char *output = NULL;
	int r;

	r = fetch_parse_output("snapshot", argc, argv, &output);
	if (r < 0)
		return EXIT_USAGE;
	if (r < argc) {
		log_error("snapshot: unexpected argument \"%s\"", argv[r]);
		return EXIT_USAGE;
	}
	if (output && (r = fetch_check(output)) != EXIT_OK)
		return r;
	r = client_connect(context->socket, &bus);
	if (r == EXIT_OK)
		r = client_snapshot(bus, 0, &reply, &snapshot);
	if (r == EXIT_OK && output)
		r = fetch_snapshot(bus, snapshot.id, output);
	if (r != EXIT_OK)
		return r;

	if (context->json) {
		r = sd_bus_message_rewind(reply, true);
		if (r >= 0)
			r = show_json(stdout, reply);
		return r < 0 ? client_bad_reply("WaitSnapshot", r) : EXIT_OK;
	}
	printf("%s\n", snapshot.id);
	fprintf(stderr, "ptctl: %s of PT in %s\n", show_size(snapshot.bytes_pt, size),
		output ? output : snapshot.path);
	return EXIT_OK;
}
