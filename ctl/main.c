/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* ptctl: the user's command. */

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "ctl/verb.h"
#include "ptd/control.h"

static const struct {
	const char *name;
	int (*run)(const struct context *context, int argc, char **argv);
	bool json; /* has an answer to print as JSON */
	const char *arguments;
	const char *help;
} verbs[] = {
	{ "status", verb_status, true, "", "what is being recorded" },
	{ "record", verb_record, false, "[-o DIR] -- COMMAND...",
	  "run a program, take a snapshot of it when it ends" },
	{ "snapshot", verb_snapshot, true, "[-o DIR] [--pid PID] [--cpu LIST]",
	  "keep the last moments of every CPU" },
	{ "pause", verb_pause, false, "", "give Intel PT up to others, such as perf" },
	{ "resume", verb_resume, false, "", "record again after a pause" },
	{ "list", verb_list, true, "", "the snapshots there are, oldest first" },
	{ "info", verb_info, true, "ID", "what the manifest of a snapshot says" },
};

static void print_usage(void)
{
	puts("Usage: ptctl [--socket PATH] [--json] VERB ...\n");
	for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
		printf("  %s%s%s\n      %s\n", verbs[i].name, verbs[i].arguments[0] ? " " : "",
		       verbs[i].arguments, verbs[i].help);
	puts("\n"
	     "  -o DIR         copy the snapshot to DIR, which must be absent or empty\n"
	     "  --pid PID      only CPUs on which the process ran, and only its code\n"
	     "  --cpu LIST     only these CPUs: 0-3,8\n"
	     "  --socket PATH  of the recorder (or $PTD_SOCKET; " PTD_CONTROL_SOCKET_DEFAULT ")\n"
	     "  --json         print the recorder's answer as JSON\n"
	     "  --help, --version\n"
	     "\n"
	     "Exit status: 0 done, 1 failed, 2 wrong usage, 3 ptd cannot be reached, 4 access\n"
	     "denied, 5 ptd is busy, 6 no such snapshot. record: that of the command, or 128 plus\n"
	     "the number of the signal that killed it; 125 ptctl or ptd failed, 126 the command "
	     "cannot be executed,\n"
	     "127 it was not found.");
}

static int parse_options(int argc, char **argv, struct context *context, bool *ret_done)
{
	enum { SOCKET = 256, JSON, HELP, VERSION };
	static const struct option options[] = {
		{ "socket", required_argument, NULL, SOCKET },
		{ "json", no_argument, NULL, JSON },
		{ "help", no_argument, NULL, HELP },
		{ "version", no_argument, NULL, VERSION },
		{},
	};
	int option;

	while ((option = getopt_long(argc, argv, "+", options, NULL)) >= 0) {
		switch (option) {
		case SOCKET:
			context->socket = optarg;
			break;
		case JSON:
			context->json = true;
			break;
		case HELP:
			print_usage();
			*ret_done = true;
			return EXIT_OK;
		case VERSION:
			puts("ptctl " PTD_VERSION);
			*ret_done = true;
			return EXIT_OK;
		default:
			return EXIT_USAGE;
		}
	}
	return EXIT_OK;
}

/* --json may also stand behind the verb. */
static int take_json(int argc, char **argv, struct context *context)
{
	int n = 1;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--json") == 0)
			context->json = true;
		else
			argv[n++] = argv[i];
	}
	argv[n] = NULL;
	return n;
}

int main(int argc, char **argv)
{
	const char *from_env = getenv("PTD_SOCKET");
	struct context context = {
		.socket = from_env && from_env[0] ? from_env : PTD_CONTROL_SOCKET_DEFAULT,
	};
	bool done = false;
	int first, r;

	r = parse_options(argc, argv, &context, &done);
	if (r != EXIT_OK) {
		fputs("Try: ptctl --help\n", stderr);
		return r;
	}
	if (done)
		return fflush(stdout) == 0 ? EXIT_OK : EXIT_FAILED;
	first = optind;
	if (first >= argc) {
		log_error("what shall I do? Try: ptctl --help");
		return EXIT_USAGE;
	}
	for (size_t i = 0; i < ARRAY_LEN(verbs); i++) {
		if (strcmp(argv[first], verbs[i].name) != 0)
			continue;
		argc -= first;
		argv += first;
		if (verbs[i].json)
			argc = take_json(argc, argv, &context);
		r = verbs[i].run(&context, argc, argv);
		if (fflush(stdout) != 0 && r == EXIT_OK) {
			log_error("cannot write the output: %m");
			r = EXIT_FAILED;
		}
		return r;
	}
	log_error("unknown verb \"%s\". Try: ptctl --help", argv[first]);
	return EXIT_USAGE;
}
