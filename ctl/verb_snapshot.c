/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* ptctl snapshot */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/printable.h"
#include "ctl/client.h"
#include "ctl/decode.h"
#include "ctl/show.h"
#include "ctl/verb.h"
#include "util/textfile.h"

#define UNIT_SIZE 256 /* the longest name of a unit, with the NUL */

/* Take over the condition for which the snapshot is taken. */
static int take_trigger(const char *text, void *userdata)
{
	struct client_scope *scope = userdata;
	const size_t n = strlen(text);

	if (n >= sizeof(scope->trigger))
		return log_as(-EINVAL, "snapshot: --trigger: more than %zu characters",
			      sizeof(scope->trigger) - 1);
	memcpy(scope->trigger, text, n + 1);
	printable_clean(scope->trigger, n);
	return 0;
}

/* Read the name of the process; "" if it has ended, or may not be seen. */
static void read_comm(uint32_t pid, char ret_text[static CLIENT_COMMAND_SIZE])
{
	char path[32];
	int n;

	(void)snprintf(path, sizeof(path), "/proc/%" PRIu32 "/comm", pid);
	n = textfile_read(AT_FDCWD, path, ret_text, CLIENT_COMMAND_SIZE);
	while (n > 0 && ret_text[n - 1] == '\n')
		ret_text[--n] = '\0';
	printable_clean(ret_text, strlen(ret_text));
}

/* What the command line asks for. */
struct wish {
	struct client_scope scope;
	char unit[UNIT_SIZE];    /* the name of its control group; "": none */
	struct decode_wish then; /* instead of a snapshot that stays */
};

/* A name without a suffix is that of a service, as for systemctl. @userdata has UNIT_SIZE
 * bytes. */
static int parse_unit(const char *text, void *userdata)
{
	char *ret_unit = userdata;
	const int n =
	    snprintf(ret_unit, UNIT_SIZE, "%s%s", text, strchr(text, '.') ? "" : ".service");

	if (text[0] && !strchr(text, '/') && n < (int)UNIT_SIZE)
		return 0;
	return log_as(-EINVAL, "snapshot: --unit: \"%s\" is no name of a unit", text);
}

static int take_snapshot(const struct context *context, struct wish *wish)
{
	_cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	_cleanup_(client_snapshot_deinit) struct client_snapshot snapshot = {};
	struct client_scope *scope = &wish->scope;
	int kept = EXIT_OK, r;

	r = decode_check(&wish->then);
	if (r != EXIT_OK)
		return r;
	if (scope->pid > 0)
		read_comm(scope->pid, scope->command);
	scope->command_pid = scope->pid;
	r = client_connect(context->socket, &bus);
	if (r == EXIT_OK)
		r = client_snapshot(bus, scope, &reply, &snapshot);
	if (r == EXIT_OK)
		kept = show_without_room(&snapshot);
	if (r == EXIT_OK)
		r = decode_taken(bus, snapshot.id, &wish->then);
	if (r == EXIT_OK && context->json && !wish->then.what)
		r = show_reply(stdout, reply, "WaitSnapshot");
	if (r != EXIT_OK || wish->then.what || context->json)
		return r != EXIT_OK ? r : kept;
	printf("%s\n", snapshot.id);
	(void)fflush(stdout);
	show_taken(&snapshot, wish->then.output, 0);
	return kept;
}

int verb_snapshot(const struct context *context, int argc, char **argv)
{
	struct wish wish = {};
	struct client_scope *scope = &wish.scope;
	const struct verb_option options[] = {
		{ "output", 'o', .text = &wish.then.output },
		{ "pid", 'p', .number = &scope->pid, .what = "process ID" },
		{ "unit", .read = parse_unit, .userdata = wish.unit },
		{ "cgroup", .text = &scope->cgroup },
		{ "cpu", 'C', .text = &scope->cpus },
		{ "trigger", .read = take_trigger, .userdata = scope },
		{ "then", .text = &wish.then.what },
	};
	const int r = verb_parse(argc, argv, options, ARRAY_LEN(options), true);

	if (r < 0)
		return EXIT_USAGE;
	if (scope->cgroup && wish.unit[0])
		return log_as(EXIT_USAGE, "snapshot: --unit and --cgroup exclude each other");
	if (r < argc)
		return log_as(EXIT_USAGE, "snapshot: unexpected argument \"%s\"", argv[r]);
	if (wish.unit[0])
		scope->cgroup = wish.unit;
	return take_snapshot(context, &wish);
}
