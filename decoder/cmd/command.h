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
#include "decoder/cmd/creator.h"
#include "decoder/cmd/rawcode.h"
#include "ptd/decode.h"
#include "ptd/sink.h"
#include "util/vec.h"

#define COMMAND_OUTPUTS_MAX      8
#define COMMAND_SINK_OPTIONS_MAX 8 /* of one output */

/* Exit statuses. */
enum {
	STATUS_OK = 0,
	STATUS_FAILED = 1,
	STATUS_USAGE = 2,
	STATUS_GAPS = 3, /* decoded, but the input was damaged or code was missing */
};

struct requested_output {
	const struct ptd_sink_ops *ops;
	const char *path;                                  /* NULL: standard output */
	const char *options[COMMAND_SINK_OPTIONS_MAX + 1]; /* ended by NULL */
	struct ptd_sink_config config;
	struct creator creator; /* of one that makes files in a directory */
	struct ptd_sink *sink;
};

/* Code for a bare PT stream, as it was asked for: nothing was read yet. */
struct command_code {
	enum {
		COMMAND_PAGES, /* in path, at the addresses that are in the other file */
		COMMAND_ELF,
		COMMAND_FILE, /* at the address */
	} kind;
	const char *path;
	const char *address_path;
	uint64_t address;
};

struct command {
	struct ptd_options options;
	VEC(struct command_code) code;
	struct rawcode raw_code; /* what was found in them; see command_read_code() */
	struct requested_output outputs[COMMAND_OUTPUTS_MAX];
	size_t n_outputs;
	uint64_t max_output;   /* bytes that all outputs together may have; 0: any number */
	uint64_t room;         /* of these, what is left */
	uint64_t max_memory;   /* bytes of address space that decoding may take */
	char *home_debug;      /* ~/.debug */
	const char *state_dir; /* where snapshots are found by their ids; NULL: as usual */
	char *snapshot;        /* one that was found so */
	bool debuginfod;       /* servers may be asked */
};

/*
 * Parse the command line, whose strings are borrowed; no file is read, but a snapshot looked for
 * that is named by its id. --help and --version print and exit.
 *
 * Return: STATUS_OK; STATUS_USAGE or STATUS_FAILED, and what is wrong was logged. Deinit it in any
 *         case.
 */
_must_check_ int command_parse(struct command *command, int argc, char **argv);
void command_deinit(struct command *command);

/*
 * Read the files of code that the command line names, which are foreign.
 *
 * Return: 0, and they are in command->options; or negative errno, and what is wrong was logged.
 */
_must_check_ int command_read_code(struct command *command);

/* Log @message, or what errno @r (negative) means if it is NULL; it is freed. */
void command_log(int r, char *message);
