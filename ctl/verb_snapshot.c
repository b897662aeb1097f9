/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* ptctl snapshot */

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
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

enum { OPTION_THEN = 256, OPTION_UNIT, OPTION_CGROUP };

#define UNIT_SIZE 256 /* the longest name of a unit, with the NUL */

/* Take over the condition for which the snapshot is taken. */
static int take_trigger(const char *text, struct client_scope *scope)
{
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
	_cleanup_(fd_closep) int fd = -1;
	char path[32];
	ssize_t n;

	(void)snprintf(path, sizeof(path), "/proc/%" PRIu32 "/comm", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, ret_text, CLIENT_COMMAND_SIZE - 1);
	if (n < 0)
		n = 0;
	while (n > 0 && ret_text[n - 1] == '\n')
		n--;
	ret_text[n] = 0;
	printable_clean(ret_text, (size_t)n);
}

/* What the command line asks for. */
struct wish {
	struct client_scope scope;
	char unit[UNIT_SIZE];    /* the name of its control group; "": none */
	struct decode_wish then; /* instead of a snapshot that stays */
};

/* A name without a suffix is that of a service, as for systemctl. */
static int parse_unit(const char *text, char ret_unit[static UNIT_SIZE])
{
	const int n =
	    snprintf(ret_unit, UNIT_SIZE, "%s%s", text, strchr(text, '.') ? "" : ".service");

	if (text[0] && !strchr(text, '/') && n < (int)UNIT_SIZE)
		return 0;
	return log_as(-EINVAL, "snapshot: --unit: \"%s\" is no name of a unit", text);
}

/* Return: index of the first argument that is no option, or -EINVAL. */
static int parse_snapshot(int argc, char **argv, struct wish *wish)
{
	static const struct option options[] = {
		{ "output", required_argument, NULL, 'o' },
		{ "pid", required_argument, NULL, 'p' },
		{ "unit", required_argument, NULL, OPTION_UNIT },
		{ "cgroup", required_argument, NULL, OPTION_CGROUP },
		{ "cpu", required_argument, NULL, 'C' },
		{ "trigger", required_argument, NULL, 'T' },
		{ "then", required_argument, NULL, OPTION_THEN },
		{},
	};
	struct client_scope *scope = &wish->scope;
	int option;

	optind = 0; /* start over: main() has parsed options of its own */
	while ((option = getopt_long(argc, argv, "+o:p:C:", options, NULL)) >= 0) {
		switch (option) {
		case 'o':
			wish->then.output = optarg;
			break;
		case 'p':
			if (verb_parse_number("snapshot", "process ID", optarg, INT32_MAX,
					      &scope->pid) < 0)
				return -EINVAL;
			break;
		case OPTION_UNIT:
			if (parse_unit(optarg, wish->unit) < 0)
				return -EINVAL;
			break;
		case OPTION_CGROUP:
			scope->cgroup = optarg;
			break;
		case 'C':
			scope->cpus = optarg;
			break;
		case 'T':
			if (take_trigger(optarg, scope) < 0)
				return -EINVAL;
			break;
		case OPTION_THEN:
			wish->then.what = optarg;
			break;
		default:
			return log_as(-EINVAL, "snapshot: see ptctl snapshot --help");
		}
	}
	if (scope->cgroup && wish->unit[0])
		return log_as(-EINVAL, "snapshot: --unit and --cgroup exclude each other");
	return optind;
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
	int r;

	r = parse_snapshot(argc, argv, &wish);
	if (r < 0)
		return EXIT_USAGE;
	if (r < argc)
		return log_as(EXIT_USAGE, "snapshot: unexpected argument \"%s\"", argv[r]);
	if (wish.unit[0])
		wish.scope.cgroup = wish.unit;
	return take_snapshot(context, &wish);
}
