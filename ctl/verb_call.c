/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What verbs have in common; and those that only call a method: ptctl pause, resume, reload. */

#include <assert.h>
#include <errno.h>
#include <getopt.h>

#include "base/log.h"
#include "ctl/client.h"
#include "ctl/show.h"
#include "ctl/verb.h"
#include "util/number.h"

int verb_parse_number(const char *verb, const char *what, const char *text, uint32_t *ret_number)
{
	uint64_t n;

	if (number_parse(text, INT32_MAX, &n) < 0 || n == 0)
		return log_as(-EINVAL, "%s: \"%s\" is no %s", verb, text, what);
	*ret_number = (uint32_t)n;
	return 0;
}

#define OPTIONS_MAX 8u

static int take_option(const char *verb, const struct verb_option *option, const char *text)
{
	if (option->flag)
		*option->flag = true;
	else if (option->text)
		*option->text = text;
	else if (option->number)
		return verb_parse_number(verb, option->what, text, option->number);
	else
		return option->read(text, option->userdata);
	return 0;
}

int verb_parse(int argc, char **argv, const struct verb_option *options, size_t n, bool in_order)
{
	enum { FIRST = 256 };
	struct option all[OPTIONS_MAX + 1] = {};
	char letters[2 * OPTIONS_MAX + 2] = "+", *to = letters + in_order;
	int got, r = 0;

	assert(n <= OPTIONS_MAX);
	for (size_t i = 0; i < n; i++) {
		all[i] = (struct option){
			.name = options[i].name,
			.has_arg = options[i].flag ? no_argument : required_argument,
			.val = options[i].letter ?: FIRST + (int)i,
		};
		if (options[i].letter)
			to += sprintf(to, "%c:", options[i].letter);
	}
	*to = 0;
	optind = 0; /* start over: main() has parsed options of its own */
	while (r == 0 && (got = getopt_long(argc, argv, letters, all, NULL)) >= 0) {
		size_t i = 0;

		while (i < n && all[i].val != got)
			i++;
		r = i < n ? take_option(argv[0], &options[i], optarg)
			  : log_as(-EINVAL, "%s: see ptctl %s --help", argv[0], argv[0]);
	}
	return r < 0 ? r : optind;
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
