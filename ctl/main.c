/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* ptctl: the user's command. */

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "ctl/run.h"
#include "ctl/verb.h"
#include "ptd/control.h"

static int verb_help(const struct context *context, int argc, char **argv);

static const struct verb {
	const char *name;
	int (*run)(const struct context *context, int argc, char **argv);
	bool json;    /* the verb has a reply to print as JSON */
	bool command; /* what follows the verb's options is a command */
	const char *arguments;
	const char *help;
} verbs[] = {
	{ "status", verb_status, true, false, "", "show what is being recorded" },
	{ "check", verb_check, true, false, "[--prove [-o DIR]]",
	  "show what this machine lacks for recording, and how to get it; or whether what is "
	  "decoded of its PT is what ran" },
	{ "metrics", verb_metrics, false, false, "[--http]",
	  "show what is being recorded as OpenMetrics" },
	{ "record", verb_record, false, true,
	  "[-o DIR | --then VERB [-o FILE]] [--private] [--timing] [--jit] [--when CONDITION]... "
	  "[--count N] -- COMMAND...",
	  "run a program, and take a snapshot when it ends, or when a condition holds" },
	{ "snapshot", verb_snapshot, true, false,
	  "[-o DIR | --then VERB [-o FILE]] [--pid PID] [--cpu LIST] [--trigger TEXT]",
	  "write the last moments of every CPU to the disk" },
	{ "trigger", verb_trigger, true, false,
	  "[[--comm NAME] [--count N] [--interval TIME] [--delay TIME] CONDITION | --remove ID...]",
	  "take a snapshot when a condition holds on the machine, or list what is waited for" },
	{ "pause", verb_pause, false, false, "", "give Intel PT to other programs, such as perf" },
	{ "resume", verb_resume, false, false, "", "record again after a pause" },
	{ "list", verb_list, true, false, "", "list the snapshots, oldest first" },
	{ "info", verb_info, true, false, "ID | --core [--last N] [--journal DIR] [MATCH]",
	  "show the manifest of a snapshot, or what a process executed before it dumped core" },
	{ "rm", verb_rm, false, false, "ID...", "remove snapshots" },
	{ "keep", verb_keep, false, false, "[--release] ID...",
	  "exclude snapshots from being removed to make room" },
	{ "reload", verb_reload, false, false, "", "make the recorder read its settings again" },
	{ "help", verb_help, false, false, "[VERB]", "show how a verb is used" },
};

static const struct option_help {
	const char *usage; /* its short form, its long one, and its argument, if it has them */
	const char *help;
	const char *verbs[3]; /* that take the option; none: all, and it stands before the verb */
} options_help[] = {
	{ "-o, --output DIR",
	  "copy the snapshot to DIR, which must be absent or empty; of check --prove, what differs",
	  { "record", "snapshot", "check" } },
	{ "--then VERB",
	  "decode as ptdecode VERB does, as in --then 'calls --json'; keep no snapshot",
	  { "record", "snapshot" } },
	{ "--prove", "compare what is decoded of PT with programs that are stepped", { "check" } },
	{ "--private", "record by a recorder of your own, even if ptd runs", { "record" } },
	{ "--timing",
	  "write MTC and CYC packets: the time of each branch, in a larger recording",
	  { "record" } },
	{ "--jit",
	  "have runtimes (node, java, ...) write down the names of the code that they make",
	  { "record" } },
	{ "--when CONDITION",
	  "take the snapshot when enter:FUNCTION[@OBJECT], signal:NAME or exit:STATUS holds",
	  { "record" } },
	{ "--count N", "take up to N snapshots instead of one", { "record", "trigger" } },
	{ "--comm NAME", "only in threads of that name", { "trigger" } },
	{ "--interval TIME", "ignore the condition for so long after it held (1s)", { "trigger" } },
	{ "--delay TIME", "take the snapshot so long after the condition held", { "trigger" } },
	{ "--remove", "remove triggers", { "trigger" } },
	{ "--pid PID", "limit the snapshot to the process and its descendants", { "snapshot" } },
	{ "--unit NAME",
	  "limit it to the processes of a unit of systemd, and their descendants",
	  { "snapshot" } },
	{ "--cgroup NAME",
	  "limit it to the processes of a control group, and their descendants",
	  { "snapshot" } },
	{ "--http", "answer one HTTP request, which is read from standard input", { "metrics" } },
	{ "--core",
	  "show the newest core dump of MATCH (a PID, name or path), and its snapshot",
	  { "info" } },
	{ "--last N", "show N instructions of the thread that crashed (20)", { "info" } },
	{ "--journal DIR", "read the journal files in DIR", { "info" } },
	{ "--release", "let the snapshots be removed again", { "keep" } },
	{ "--trigger TEXT", "the condition that held, for the manifest", { "snapshot" } },
	{ "--cpu LIST", "limit the snapshot to these CPUs: 0-3,8", { "snapshot" } },
	{ "-H, --host HOST", "run the verb on [USER@]HOST[:PORT], through ssh", {} },
	{ "--socket PATH",
	  "the control socket (or $PTD_SOCKET; " PTD_CONTROL_SOCKET_DEFAULT ")",
	  {} },
	{ "--json", "print the recorder's answer as JSON", {} },
	{ "-h, --help", "print this help; after a verb, that of the verb", {} },
	{ "--version", "print the version", {} },
};

static void print_option(const struct option_help *o)
{
	printf("  %-18s %s\n", o->usage, o->help);
}

static void print_usage(void)
{
	puts("Usage: ptctl [-H HOST] [--socket PATH] [--json] VERB ...\n");
	for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
		printf("  %s%s%s\n      %s\n", verbs[i].name, verbs[i].arguments[0] ? " " : "",
		       verbs[i].arguments, verbs[i].help);
	putchar('\n');
	for (size_t i = 0; i < ARRAY_LEN(options_help); i++)
		print_option(&options_help[i]);
	puts(
	    "\n"
	    "ID is the id of a snapshot, or latest: the newest one.\n"
	    "Exit status: 0 done, 1 failed, 2 wrong usage, 3 ptd cannot be reached, 4 access\n"
	    "denied, 5 ptd is busy, 6 no such snapshot, 7 no room for files that ran. record: "
	    "that\n"
	    "of the command, or 128 plus the number of the signal that killed it; 124 no room for\n"
	    "files that ran, 125 ptctl or ptd failed, 126 the command cannot be executed, 127 it\n"
	    "was not found. See ptctl(1).");
}

static bool has_option(const struct verb *verb, const struct option_help *option)
{
	for (size_t i = 0; i < ARRAY_LEN(option->verbs) && option->verbs[i]; i++)
		if (strcmp(verb->name, option->verbs[i]) == 0)
			return true;
	return false;
}

static void print_verb(const struct verb *verb)
{
	bool first = true;

	printf("Usage: ptctl [-H HOST] [--socket PATH] %s%s%s%s\n\n%s\n",
	       verb->json || verb->command ? "[--json] " : "", verb->name,
	       verb->arguments[0] ? " " : "", verb->arguments, verb->help);
	for (size_t i = 0; i < ARRAY_LEN(options_help); i++) {
		if (!has_option(verb, &options_help[i]))
			continue;
		if (first)
			putchar('\n');
		first = false;
		print_option(&options_help[i]);
	}
}

static const struct verb *find_verb(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
		if (strcmp(name, verbs[i].name) == 0)
			return &verbs[i];
	log_error("unknown verb \"%s\". Try: ptctl --help", name);
	return NULL;
}

static int verb_help(const struct context *context, int argc, char **argv)
{
	const struct verb *verb;

	if (argc > 2)
		return log_as(EXIT_USAGE, "help: unexpected argument \"%s\"", argv[2]);
	if (argc < 2) {
		print_usage();
		return EXIT_OK;
	}
	verb = find_verb(argv[1]);
	if (!verb)
		return EXIT_USAGE;
	print_verb(verb);
	return EXIT_OK;
}

static bool takes_argument(const char *option)
{
	const size_t n = strlen(option);

	for (size_t i = 0; i < ARRAY_LEN(options_help); i++) {
		const char *usage = options_help[i].usage, *last = strrchr(usage, ' ');
		const char *at = strstr(usage, option);

		if (at && (at == usage || at[-1] == ' ') && strchr(" ,", at[n]))
			return last && last[1] != '-';
	}
	return false;
}

/* Return: whether --help is among the verb's own options. */
static bool asks_help(const struct verb *verb, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--") == 0 || (argv[i][0] != '-' && verb->command))
			return false;
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
			return true;
		i += takes_argument(argv[i]);
	}
	return false;
}

/* What stands before the verb. */
struct request {
	const char *host; /* NULL: this machine */
	char *socket;     /* NULL: not named */
	bool json;
};

static int parse_options(int argc, char **argv, struct request *ret_request, bool *ret_done)
{
	enum { SOCKET = 256, JSON, VERSION };
	static const struct option options[] = {
		{ "host", required_argument, NULL, 'H' },
		{ "socket", required_argument, NULL, SOCKET },
		{ "json", no_argument, NULL, JSON },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, VERSION },
		{},
	};
	int option;

	while ((option = getopt_long(argc, argv, "+H:h", options, NULL)) >= 0) {
		switch (option) {
		case 'H':
			ret_request->host = optarg;
			break;
		case SOCKET:
			ret_request->socket = optarg;
			break;
		case JSON:
			ret_request->json = true;
			break;
		case 'h':
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

/* --json may also follow the verb. */
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

static int run_verb(const struct verb *verb, struct context *context, int argc, char **argv)
{
	int r;

	if (verb->json)
		argc = take_json(argc, argv, context);
	r = verb->run(context, argc, argv);
	if (fflush(stdout) != 0 && r == EXIT_OK) {
		log_error("cannot write the output: %m");
		r = EXIT_FAILED;
	}
	return r;
}

/* The other machine has a control socket of its own, unless the user names one. */
static int run_on_host(const struct request *request, int argc, char **argv)
{
	static char socket[] = "--socket", json[] = "--json";
	_cleanup_(freep) char **all = calloc((size_t)argc + 4, sizeof(char *));
	size_t n = 0;

	if (!all)
		return log_as(EXIT_FAILED, "%s: %m", argv[0]);
	if (request->socket) {
		all[n++] = socket;
		all[n++] = request->socket;
	}
	if (request->json)
		all[n++] = json;
	memcpy(all + n, argv, (size_t)argc * sizeof(char *));
	return remote_run(request->host, argv[0], all);
}

static int run(const struct request *request, int argc, char **argv)
{
	const struct verb *verb = find_verb(argv[0]);
	const char *from_env = getenv("PTD_SOCKET");
	struct context context = {
		.socket = request->socket         ? request->socket
			  : from_env && *from_env ? from_env
						  : PTD_CONTROL_SOCKET_DEFAULT,
		.is_named = request->socket || (from_env && *from_env),
		.json = request->json,
	};

	if (!verb)
		return EXIT_USAGE;
	if (asks_help(verb, argc, argv)) {
		print_verb(verb);
		return fflush(stdout) == 0 ? EXIT_OK : EXIT_FAILED;
	}
	if (request->host && verb->run != verb_help)
		return run_on_host(request, argc, argv);
	return run_verb(verb, &context, argc, argv);
}

int main(int argc, char **argv)
{
	struct request request = {};
	bool done = false;
	int r;

	r = parse_options(argc, argv, &request, &done);
	if (r != EXIT_OK) {
		fputs("Try: ptctl --help\n", stderr);
		return r;
	}
	if (done)
		return fflush(stdout) == 0 ? EXIT_OK : EXIT_FAILED;
	if (optind >= argc)
		return log_as(EXIT_USAGE, "a verb is missing. Try: ptctl --help");
	return run(&request, argc - optind, argv + optind);
}
