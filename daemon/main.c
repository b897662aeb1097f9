/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* ptd: the recorder. */

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "daemon/config/config.h"
#include "daemon/manager.h"
#include "ptd/snapshot.h"
#include "util/number.h"

static const char usage[] =
    "Usage: ptd [OPTIONS]\n"
    "\n"
    "Records Intel Processor Trace into rings in memory all the time, and writes\n"
    "snapshots of them when ptctl asks.\n"
    "\n"
    "  --config FILE      read the settings in FILE and FILE.d/*.conf (" CONFIG_FILE_DEFAULT ")\n"
    "  --runtime-dir DIR  make the control socket in DIR (/run/ptd)\n"
    "  --state-dir DIR    keep snapshots in DIR (" PTD_STATE_DIR_DEFAULT ")\n"
    "  --source WHICH     use auto, emu (software) or pt (hardware), whatever Source= says\n"
    "  --parent PID       record what the children of that process execute, and theirs,\n"
    "                     as their user may; by software where hardware is not permitted\n"
    "  --until-eof        stop when standard input ends: when its writer has ended\n"
    "  -h, --help         print this help\n"
    "  --version          print the version\n"
    "\n"
    "With directories of your own it runs without privileges. See ptd(8), ptd.conf(5).\n";

struct arguments {
	const char *config;
	const char *runtime_dir;
	const char *state_dir;
	const char *source;
	const char *parent;
	bool until_eof;
};

/* Return: 0 to go on, 1 if all is done, or -EINVAL. */
static int parse_arguments(int argc, char **argv, struct arguments *arguments)
{
	enum { CONFIG, RUNTIME_DIR, STATE_DIR, SOURCE, PARENT, UNTIL_EOF, VERSION };
	static const struct option options[] = {
		{ "config", required_argument, NULL, CONFIG },
		{ "runtime-dir", required_argument, NULL, RUNTIME_DIR },
		{ "state-dir", required_argument, NULL, STATE_DIR },
		{ "source", required_argument, NULL, SOURCE },
		{ "parent", required_argument, NULL, PARENT },
		{ "until-eof", no_argument, NULL, UNTIL_EOF },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, VERSION },
		{},
	};
	const char **const texts[] = { &arguments->config, &arguments->runtime_dir,
				       &arguments->state_dir, &arguments->source,
				       &arguments->parent };
	int option;

	while ((option = getopt_long(argc, argv, "h", options, NULL)) >= 0) {
		switch (option) {
		case CONFIG:
		case RUNTIME_DIR:
		case STATE_DIR:
		case SOURCE:
		case PARENT:
			*texts[option] = optarg;
			break;
		case UNTIL_EOF:
			arguments->until_eof = true;
			break;
		case 'h':
			fputs(usage, stdout);
			return 1;
		case VERSION:
			puts("ptd " PTD_VERSION);
			return 1;
		default:
			return -EINVAL;
		}
	}
	if (optind < argc)
		return log_as(-EINVAL, "unexpected argument \"%s\"", argv[optind]);
	return 0;
}

static void warn_line(const char *file, unsigned line, const char *message)
{
	log_warning("%s:%u: %s", file, line, message);
}

static int set_parent(struct config *config, const char *text)
{
	uint64_t pid;

	if (!text)
		return 0;
	if (number_parse(text, INT32_MAX, &pid) < 0 || pid == 0)
		return log_as(-EINVAL, "--parent: \"%s\" is no process ID", text);
	config->parent = (uint32_t)pid;
	return 0;
}

/* @userdata: struct arguments. */
static int load_config(struct config *ret_config, void *userdata)
{
	const struct arguments *arguments = userdata;
	const char *path = arguments->config ? arguments->config : CONFIG_FILE_DEFAULT;
	_cleanup_(freep) char *failed = NULL;
	int r;

	config_init(ret_config);
	r = config_load(ret_config, path, !arguments->config, warn_line, &failed);
	if (r < 0)
		return log_error_errno(r, "%s: cannot read it: %m", failed ? failed : path);
	if (arguments->source &&
	    config_source_from_string(arguments->source, &ret_config->source) < 0)
		return log_as(-EINVAL, "--source: \"%s\" is none of auto, emu, pt",
			      arguments->source);
	return set_parent(ret_config, arguments->parent);
}

int main(int argc, char **argv)
{
	struct arguments arguments = {
		.runtime_dir = "/run/ptd",
		.state_dir = PTD_STATE_DIR_DEFAULT,
	};
	_cleanup_(manager_freep) struct manager *manager = NULL;
	struct config config;
	int r;

	r = parse_arguments(argc, argv, &arguments);
	if (r > 0)
		return EXIT_SUCCESS;
	if (r < 0) {
		fputs("Try: ptd --help\n", stderr);
		return 2;
	}

	(void)umask(027);
	(void)signal(SIGPIPE, SIG_IGN);
	r = load_config(&config, &arguments);
	if (r == 0)
		r = manager_new(&(struct manager_options){ .config = &config,
							   .runtime_dir = arguments.runtime_dir,
							   .state_dir = arguments.state_dir,
							   .until_eof = arguments.until_eof,
							   .load_config = load_config,
							   .userdata = &arguments },
				&manager);
	if (r == 0)
		r = manager_run(manager);
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
