/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* ptctl info */

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "ctl/client.h"
#include "ctl/crash.h"
#include "ctl/show.h"
#include "ctl/verb.h"
#include "ptd/snapshot.h"
#include "util/regular.h"
#include "util/textfile.h"

#define LINE_SIZE_MAX 8192

/* How many instructions of a thread that crashed are shown. */
#define LAST_DEFAULT 20

/* Print the manifest @f, one line for each key or as a JSON object. Return: 0, or negative
 * errno. */
static int print_info(FILE *f, bool json)
{
	char line[LINE_SIZE_MAX];
	struct show_pairs pairs = { .json = json };

	while (fgets(line, sizeof(line), f)) {
		char *value = strchr(line, '=');

		if (!value || !strchr(line, '\n'))
			return -EBADMSG;
		*value++ = 0;
		value[strcspn(value, "\n")] = 0;
		show_pair(&pairs, line, value);
	}
	show_pairs_end(&pairs);
	return ferror(f) ? -EIO : 0;
}

static int show_manifest(const struct context *context, const char *id)
{
	_cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
	_cleanup_(textfile_closep) FILE *f = NULL;
	_cleanup_(fd_closep) int dir = -1;
	int r;

	r = client_connect(context->socket, &bus);
	if (r == EXIT_OK)
		r = client_open_snapshot(bus, id, &dir);
	if (r != EXIT_OK)
		return r;
	r = textfile_from(regular_open(dir, PTD_SNAPSHOT_MANIFEST, O_NOFOLLOW), "r", &f);
	if (r < 0)
		return log_errno_as(EXIT_FAILED, r, "snapshot %s: cannot read its manifest: %m",
				    id);
	r = print_info(f, context->json);
	if (r < 0)
		return log_errno_as(EXIT_FAILED, r,
				    "snapshot %s: cannot make sense of its manifest: %m", id);
	return EXIT_OK;
}

int verb_info(const struct context *context, int argc, char **argv)
{
	bool core = false;
	struct crash_wish crash = {};
	const struct verb_option options[] = {
		{ "core", .flag = &core },
		{ "last", .number = &crash.n_last, .what = "number of instructions" },
		{ "journal", .text = &crash.journal },
	};
	const int first = verb_parse(argc, argv, options, ARRAY_LEN(options), false);

	if (first < 0)
		return EXIT_USAGE;
	if (core && argc - first <= 1) {
		crash.n_last = crash.n_last ?: LAST_DEFAULT;
		crash.match = argv[first];
		return crash_show(context, &crash);
	}
	if (core || crash.n_last > 0 || crash.journal || argc - first != 1)
		return log_as(EXIT_USAGE,
			      "info: which snapshot? ptctl info ID; `ptctl list` has the ids. "
			      "Or a core dump's? See ptctl info --help");
	return show_manifest(context, argv[first]);
}
