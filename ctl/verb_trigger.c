/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* ptctl trigger */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "ctl/client.h"
#include "ctl/show.h"
#include "ctl/verb.h"
#include "util/timespan.h"

#define NUMBER "number from 1 on"

#define NOT_GIVEN UINT64_MAX /* a time */

/* What the command line asks for. Times are in ns. */
struct wish {
	bool remove;
	const char *comm;
	uint32_t count;
	uint64_t interval, delay;
};

/* @userdata is the time in ns. */
static int parse_time(const char *text, void *userdata)
{
	const int r = timespan_parse(text, userdata);

	if (r < 0)
		log_error("trigger: \"%s\" is no time: 500ms, 2s, 10min and 1h are", text);
	return r;
}

/* --- the list --------------------------------------------------------------------------------- */

static const char *time_text(uint64_t ns, char ret_text[static 32])
{
	(void)snprintf(ret_text, 32, "%.10gs", (double)ns / 1e9);
	return ret_text;
}

static int print_one(sd_bus_message *reply)
{
	const char *condition = "?", *comm = "", *state = "?", *error = "";
	uint32_t id = 0, count = 0, taken = 0;
	uint64_t interval = 0, delay = 0;
	const struct client_field fields[] = {
		{ "id", 'u', &id },       { "condition", 's', &condition },
		{ "comm", 's', &comm },   { "count", 'u', &count },
		{ "taken", 'u', &taken }, { "interval", 't', &interval },
		{ "delay", 't', &delay }, { "state", 's', &state },
		{ "error", 's', &error },
	};
	char times[2][32], number[32];
	int r;

	r = client_read_fields(reply, fields, ARRAY_LEN(fields));
	if (r < 0)
		return r;
	(void)snprintf(number, sizeof(number), "%" PRIu32 "/%" PRIu32, taken, count);
	printf("%4" PRIu32 " %-8s %9s %9s %9s %-15s %s\n", id, state, number,
	       time_text(interval, times[0]), time_text(delay, times[1]), comm[0] ? comm : "-",
	       condition);
	if (error[0])
		printf("     %s\n", error);
	return 0;
}

static int print_list(sd_bus_message *reply)
{
	int r;

	r = sd_bus_message_enter_container(reply, 'a', "a{sv}");
	if (r >= 0)
		printf("%4s %-8s %9s %9s %9s %-15s %s\n", "ID", "STATE", "TAKEN", "INTERVAL",
		       "DELAY", "COMM", "CONDITION");
	while (r >= 0 && (r = sd_bus_message_at_end(reply, false)) == 0)
		r = print_one(reply);
	return r < 0 ? r : 0;
}

static int list_triggers(const struct context *context, sd_bus *bus)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	int r;

	r = client_call(bus, "ListTriggers", &reply, "");
	if (r != EXIT_OK)
		return r;
	if (context->json)
		return show_reply(stdout, reply, "ListTriggers");
	r = print_list(reply);
	return r < 0 ? client_bad_reply("ListTriggers", r) : EXIT_OK;
}

/* --- adding and removing ---------------------------------------------------------------------- */

static int add_trigger(sd_bus *bus, const struct wish *wish, const char *condition)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	uint32_t id;
	int r;

	r = client_call(bus, "AddTrigger", &reply, "sa{sv}", condition, 4, "comm", "s",
			wish->comm ?: "", "count", "u", wish->count ?: 1, "interval", "t",
			wish->interval == NOT_GIVEN ? UINT64_C(1000000000) : wish->interval,
			"delay", "t", wish->delay == NOT_GIVEN ? 0 : wish->delay);
	if (r != EXIT_OK)
		return r;
	r = sd_bus_message_read(reply, "u", &id);
	if (r < 0)
		return client_bad_reply("AddTrigger", r);
	printf("%" PRIu32 "\n", id);
	return EXIT_OK;
}

static int remove_triggers(sd_bus *bus, char **ids)
{
	int r = EXIT_OK;

	for (; *ids && r == EXIT_OK; ids++) {
		_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
		uint32_t id;

		if (verb_parse_number("trigger", NUMBER, *ids, &id) < 0)
			return EXIT_USAGE;
		r = client_call(bus, "RemoveTrigger", &reply, "u", id);
	}
	return r;
}

/* Return: whether there are options that are about a new trigger. */
static bool is_about_new(const struct wish *wish)
{
	return wish->comm || wish->count > 0 || wish->interval != NOT_GIVEN ||
	       wish->delay != NOT_GIVEN;
}

/* Return: what is wrong with the arguments behind the options; NULL: nothing. */
static const char *find_fault(const struct wish *wish, int n)
{
	if (wish->remove && is_about_new(wish))
		return "--remove has no other options";
	if (wish->remove && n == 0)
		return "which trigger? ptctl trigger --remove ID; `ptctl trigger` has the ids";
	if (!wish->remove && is_about_new(wish) && n == 0)
		return "which condition? See ptctl trigger --help";
	if (!wish->remove && n > 1)
		return "one condition a trigger: see ptctl trigger --help";
	return NULL;
}

int verb_trigger(const struct context *context, int argc, char **argv)
{
	_cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
	struct wish wish = { .interval = NOT_GIVEN, .delay = NOT_GIVEN };
	const struct verb_option options[] = {
		{ "remove", .flag = &wish.remove },
		{ "comm", .text = &wish.comm },
		{ "count", .number = &wish.count, .what = NUMBER },
		{ "interval", .read = parse_time, .userdata = &wish.interval },
		{ "delay", .read = parse_time, .userdata = &wish.delay },
	};
	const char *fault;
	int first, r;

	first = verb_parse(argc, argv, options, ARRAY_LEN(options), true);
	if (first < 0)
		return EXIT_USAGE;
	fault = find_fault(&wish, argc - first);
	if (fault)
		return log_as(EXIT_USAGE, "trigger: %s", fault);
	r = client_connect(context->socket, &bus);
	if (r != EXIT_OK)
		return r;
	if (wish.remove)
		return remove_triggers(bus, argv + first);
	return first < argc ? add_trigger(bus, &wish, argv[first]) : list_triggers(context, bus);
}
