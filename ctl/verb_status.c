/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* ptctl status */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ctl/client.h"
#include "ctl/show.h"
#include "ctl/verb.h"
#include "ptd/control.h"

/* Return: what the reason says in a sentence. */
static const char *explain(const char *reason)
{
	static const struct {
		const char *reason, *text;
	} known[] = {
		{ "", "" },
		{ "share", ": it was more than their share" },
		{ "taken-back", ": taken back, others needed the room" },
		{ "disk", ": there was no room on the disk" },
		{ "time", ": reading it took too long" },
		{ "unreadable", ": it could not be read" },
	};

	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (strcmp(known[i].reason, reason) == 0)
			return known[i].text;
	return ": the recorder has a reason that ptctl does not know";
}

static int print_refused(sd_bus_message *reply)
{
	_cleanup_(freep) struct client_refused *list = NULL;
	size_t n;
	int r;

	r = client_read_refused(reply, &list, &n);
	if (r < 0)
		return client_bad_reply("GetStatus", r);
	for (size_t i = 0; i < n; i++)
		printf("%s%s of user %" PRIu32 ", %" PRIu64 " time%s%s\n",
		       i == 0 ? "   Refused: " : "            ", list[i].what, list[i].uid,
		       list[i].times, plural(list[i].times), explain(list[i].reason));
	return EXIT_OK;
}

static int print_status(sd_bus_message *reply)
{
	const char *version = "?", *source = "?", *path = "?";
	uint64_t aux = 0, switches = 0, used = 0, max = 0, lost = 0, objects = 0, snapshots = 0;
	uint32_t cpus = 0, offline = 0, busy = 0, failed = 0, pending = 0;
	int recording = 0, paused = 0, r;
	const struct client_field fields[] = {
		{ "version", 's', &version },      { "source", 's', &source },
		{ "recording", 'b', &recording },  { "cpus", 'u', &cpus },
		{ "cpus_offline", 'u', &offline }, { "cpus_busy", 'u', &busy },
		{ "cpus_failed", 'u', &failed },   { "paused", 'b', &paused },
		{ "aux_size", 't', &aux },         { "switch_size", 't', &switches },
		{ "sideband_bytes", 't', &used },  { "sideband_max", 't', &max },
		{ "sideband_lost", 't', &lost },   { "objects", 't', &objects },
		{ "snapshots", 't', &snapshots },  { "pending", 'u', &pending },
		{ "snapshots_path", 's', &path },
	};
	char a[SHOW_SIZE_MAX], b[SHOW_SIZE_MAX];

	r = client_read_fields(reply, fields, ARRAY_LEN(fields));
	if (r < 0)
		return client_bad_reply("GetStatus", r);
	printf("   Version: %s\n", version);
	printf("    Source: %s, %s\n", source,
	       paused      ? "paused: see ptctl resume"
	       : recording ? "recording"
			   : "idle");
	printf("      CPUs: %" PRIu32 " with %s of PT and %s of switches each\n",
	       cpus - busy - failed, show_size(aux, a), show_size(switches, b));
	if (busy > 0)
		printf("            %" PRIu32 " whose PT another program uses\n", busy);
	if (offline > 0)
		printf("            %" PRIu32 " offline, whose last moments are kept\n", offline);
	if (failed > 0)
		printf("            %" PRIu32 " that cannot be recorded, see the log\n", failed);
	printf("  Sideband: %s of %s", show_size(used, a), show_size(max, b));
	if (lost > 0)
		printf(", %" PRIu64 " record%s lost: see SidebandMax= in ptd.conf(5)", lost,
		       plural(lost));
	printf("\n   Objects: %" PRIu64 "\n", objects);
	printf(" Snapshots: %" PRIu64 " in %s", snapshots, path);
	if (pending > 0)
		printf(", %" PRIu32 " being written", pending);
	putchar('\n');
	return print_refused(reply);
}

int verb_status(const struct context *context, int argc, char **argv)
{
	return verb_call(context, argc, argv, "GetStatus", print_status);
}
