/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* ptctl info */

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/printable.h"
#include "ctl/client.h"
#include "ctl/crash.h"
#include "ctl/show.h"
#include "ctl/verb.h"
#include "ptd/snapshot.h"

#define LINE_SIZE_MAX 8192

/* How many instructions of a thread that crashed are shown. */
#define LAST_DEFAULT 20

/* Print the manifest @f, one line for each key or as a JSON object. Return: 0, or negative
 * errno. */
static int print_info(FILE *f, bool json)
{
	char line[LINE_SIZE_MAX];
	const char *between = "{";

	while (fgets(line, sizeof(line), f)) {
		char *value = strchr(line, '=');

		if (!value || !strchr(line, '\n'))
			return -EBADMSG;
		*value++ = 0;
		value[strcspn(value, "\n")] = 0;
		if (!json) {
			printable_clean(line, strlen(line));
			printable_clean(value, strlen(value));
			printf("%26s: %s\n", line, value);
			continue;
		}
		fputs(between, stdout);
		show_json_string(stdout, line);
		putchar(':');
		show_json_string(stdout, value);
		between = ",";
	}
	if (json)
		puts(between[0] == '{' ? "{}" : "}");
	return ferror(f) ? -EIO : 0;
}

static int show_manifest(const struct context *context, const char *id)
{
	_cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
	_cleanup_(fd_closep) int dir = -1;
	FILE *f;
	int fd, r;

	r = client_connect(context->socket, &bus);
	if (r == EXIT_OK)
		r = client_open_snapshot(bus, id, &dir);
	if (r != EXIT_OK)
		return r;

	fd = openat(dir, PTD_SNAPSHOT_MANIFEST, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	f = fd < 0 ? NULL : fdopen(fd, "r");
	if (!f) {
		log_error("snapshot %s: cannot read its manifest: %m", id);
		(void)fd_close(fd);
		return EXIT_FAILED;
	}
	r = print_info(f, context->json);
	(void)fclose(f);
	if (r < 0)
		return log_errno_as(EXIT_FAILED, r,
				    "snapshot %s: cannot make sense of its manifest: %m", id);
	return EXIT_OK;
}

/* What the command line asks for. */
struct wish {
	bool core;
	bool has_core_options;
	struct crash_wish crash;
};

/* Return: index of the first argument that is no option, or -EINVAL. */
static int parse_wish(int argc, char **argv, struct wish *wish)
{
	enum { CORE = 256, LAST, JOURNAL };
	static const struct option options[] = {
		{ "core", no_argument, NULL, CORE },
		{ "last", required_argument, NULL, LAST },
		{ "journal", required_argument, NULL, JOURNAL },
		{},
	};
	int option, r = 0;

	optind = 0; /* start over: main() has parsed options of its own */
	while (r == 0 && (option = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		wish->has_core_options = wish->has_core_options || option != CORE;
		switch (option) {
		case CORE:
			wish->core = true;
			break;
		case LAST:
			r = verb_parse_number("info", "number of instructions", optarg, UINT32_MAX,
					      &wish->crash.n_last);
			break;
		case JOURNAL:
			wish->crash.journal = optarg;
			break;
		default:
			log_error("info: see ptctl info --help");
			r = -EINVAL;
		}
	}
	return r < 0 ? r : optind;
}

int verb_info(const struct context *context, int argc, char **argv)
{
	struct wish wish = { .crash.n_last = LAST_DEFAULT };
	const int first = parse_wish(argc, argv, &wish);

	if (first < 0)
		return EXIT_USAGE;
	if (wish.core && argc - first <= 1) {
		wish.crash.match = argv[first];
		return crash_show(context, &wish.crash);
	}
	if (wish.core || wish.has_core_options || argc - first != 1)
		return log_as(EXIT_USAGE,
			      "info: which snapshot? ptctl info ID; `ptctl list` has the ids. "
			      "Or a core dump's? See ptctl info --help");
	return show_manifest(context, argv[first]);
}
