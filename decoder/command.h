/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Command
 *
 * What the command line of ptdecode asks for.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/base.h"
#include "decoder/raw.h"
#include "ptd/decode.h"
#include "ptd/sink.h"

#define COMMAND_OUTPUTS_MAX 8

/* Exit statuses. */
enum {
	STATUS_OK = 0,
	STATUS_FAILED = 1,
	STATUS_USAGE = 2,
	STATUS_GAPS = 3, /* decoded, but the input was damaged or code was missing */
};

struct output {
	const struct ptd_sink_ops *ops;
	const char *path; /* NULL: standard output */
	struct ptd_sink *sink;
};

struct command {
	struct ptd_options options;
	struct raw_code code;
	struct output outputs[COMMAND_OUTPUTS_MAX];
	size_t n_outputs;
	char *home_debug; /* ~/.debug */
	bool debuginfod;  /* servers may be asked */
};

/*
 * Parse the command line, whose strings are borrowed; files of code are read. --help and --version
 * print and exit.
 *
 * Return: STATUS_OK; STATUS_USAGE or STATUS_FAILED, and what is wrong was logged. Deinit it in any
 *         case.
 */
_must_check_ int command_parse(struct command *command, int argc, char **argv);
void command_deinit(struct command *command);

/* Log @message, or what errno @r (negative) means if it is NULL; it is freed. */
void command_log(int r, char *message);
