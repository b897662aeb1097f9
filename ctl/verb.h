/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Verb
 *
 * What ptctl can do: one file per verb, one line each in the table of main.c.
 */

#include <stdbool.h>

#include "base/base.h"

/* Exit statuses; ptctl(1) promises them. */
enum {
	EXIT_OK = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
	EXIT_UNREACHABLE = 3,
	EXIT_DENIED = 4,
	EXIT_BUSY = 5,
	EXIT_NO_SNAPSHOT = 6,

	/* Of record, as env(1) has it: those below are the program's. */
	EXIT_NOT_RECORDED = 125, /* ptctl or ptd failed */
	EXIT_CANNOT_EXECUTE = 126,
	EXIT_NOT_FOUND = 127,
	EXIT_SIGNAL = 128, /* plus the signal's number */
};

struct context {
	const char *socket; /* path of the recorder's */
	bool json;
};

/*
 * Each takes its own arguments, argv[0] being the verb, and says on stderr what went wrong.
 *
 * Return: the exit status; of verb_record() EXIT_OK to EXIT_BUSY are the program's own.
 */
int verb_status(const struct context *context, int argc, char **argv);
int verb_pause(const struct context *context, int argc, char **argv);
int verb_resume(const struct context *context, int argc, char **argv);
int verb_reload(const struct context *context, int argc, char **argv);
int verb_snapshot(const struct context *context, int argc, char **argv);
int verb_info(const struct context *context, int argc, char **argv);
int verb_list(const struct context *context, int argc, char **argv);
int verb_rm(const struct context *context, int argc, char **argv);
int verb_keep(const struct context *context, int argc, char **argv);
int verb_record(const struct context *context, int argc, char **argv);
