/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Verb
 *
 * What ptctl can do: one file per verb, one line each in the table of main.c.
 */

#include <stdbool.h>

#include "base/base.h"

/* Exit statuses; ptctl(1) promises them. `record` returns the command's own. */
enum {
	EXIT_OK = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
	EXIT_UNREACHABLE = 3,
	EXIT_DENIED = 4,
	EXIT_BUSY = 5,

	/* Of record, as shells have it. */
	EXIT_CANNOT_EXECUTE = 126,
	EXIT_NOT_FOUND = 127,
	EXIT_SIGNAL = 128, /* plus the signal's number */
};

struct context {
	const char *socket; /* path of the recorder's */
	bool json;
};

/* Each takes its own arguments, argv[0] being the verb, and returns the exit status. */
int verb_status(const struct context *context, int argc, char **argv);
int verb_snapshot(const struct context *context, int argc, char **argv);
int verb_list(const struct context *context, int argc, char **argv);
int verb_record(const struct context *context, int argc, char **argv);
