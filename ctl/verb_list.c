/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* ptctl list */

#include <inttypes.h>
#include <stdio.h>

#include "base/log.h"
#include "ctl/client.h"
#include "ctl/show.h"
#include "ctl/verb.h"

static int print_one(sd_bus_message *reply)
{
	const char *id = "?", *created = "?";
	uint64_t bytes = 0;
	uint32_t cpus = 0;
	int kept = 0;
	const struct client_field fields[] = {
		{ "id", 's', &id },     { "created", 's', &created }, { "bytes", 't', &bytes },
		{ "cpus", 'u', &cpus }, { "kept", 'b', &kept },
	};
	char size[SHOW_SIZE_MAX];
	int r;

	r = client_read_fields(reply, fields, ARRAY_LEN(fields));
	if (r == 0)
		printf("%-32s %-28s %10s %5" PRIu32 "%s\n", id, created, show_size(bytes, size),
		       cpus, kept ? "  kept" : "");
	return r;
}

static int print(sd_bus_message *reply)
{
	int r;

	r = sd_bus_message_enter_container(reply, 'a', "a{sv}");
	if (r >= 0)
		printf("%-32s %-28s %10s %5s\n", "ID", "TIME", "SIZE", "CPUS");
	while (r >= 0 && (r = sd_bus_message_at_end(reply, false)) == 0)
		r = print_one(reply);
	return r < 0 ? client_bad_reply("ListSnapshots", r) : EXIT_OK;
}

int verb_list(const struct context *context, int argc, char **argv)
{
	_cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	int r;

	if (argc > 1) {
		log_error("list: unexpected argument \"%s\"", argv[1]);
		return EXIT_USAGE;
	}
	r = client_connect(context->socket, &bus);
	if (r == EXIT_OK)
		r = client_call(bus, "ListSnapshots", &reply, "");
	if (r != EXIT_OK)
		return r;
	if (!context->json)
		return print(reply);
	r = show_json(stdout, reply);
	return r < 0 ? client_bad_reply("ListSnapshots", r) : EXIT_OK;
}
