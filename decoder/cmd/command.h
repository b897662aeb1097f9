/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Command
 *
 * What the command line of ptdecode asks for.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/cmd/rawcode.h"
#include "decoder/cmd/requested.h"
#include "ptd/decode.h"
#include "util/ptdecode.h"
#include "util/vec.h"

/* Numbers that one option may ask for. */
#define ASKED_IDS_MAX 65536

struct asked_ids {
	uint32_t *items;
	size_t n, n_capacity;
};

struct asked_names {
	const char **items; /* borrowed from the command line */
	size_t n, n_capacity;
};

/* Code for a bare PT stream, as the command line names it; its files have not been read. */
struct command_code {
	enum {
		COMMAND_PAGES, /* pages in @path, at the addresses in @address_path */
		COMMAND_ELF,   /* the ELF file @path, at the addresses in its program headers */
		COMMAND_FILE,  /* the whole file @path, at @address */
	} kind;
	const char *path;
	const char *address_path;
	uint64_t address;
};

struct command {
	struct ptd_options options;
	VEC(struct command_code) code;
	struct rawcode raw_code; /* what command_read_code() found in @code */
	struct {
		struct asked_ids cpus, pids, tids;
		struct asked_names comms, symbols, objects;
	} asked;                  /* each option adds to the list of its name */
	VEC(const char *) inputs; /* all files and directories that are read; borrowed */
	struct requested_outputs outputs;
	const char *also[REQUESTED_MAX]; /* the outputs that --also asks for, as it was given */
	size_t n_also;
	uint64_t max_output;  /* bytes that all outputs together may have; 0: no limit */
	uint64_t room;        /* bytes of max_output that are left */
	uint64_t max_memory;  /* bytes of address space that decoding may take */
	size_t n_threads;     /* as asked for; 0: as many as there are CPUs */
	size_t n_threads_max; /* at most this number is started */
	struct ptd_threads *threads;
	char *home_debug;      /* ~/.debug */
	const char *state_dir; /* where snapshots are found by their ids; NULL: the default */
	/* What the input is compared with: by diff one, by rank any number. */
	VEC(const char *) others;
	VEC(char *) snapshots; /* paths of the inputs that were found by their ids */
	size_t n_behind;       /* words behind "--" */
	bool diff, rank;
	bool debuginfod; /* servers may be asked for files */
	bool verify;     /* both engines decode, and are compared; there are no outputs */
	bool help;       /* show how to use the verb, and do nothing else */
};

/*
 * Parse the command line, whose strings are borrowed. No file is read, but a snapshot that is named
 * by its id is looked for. help, --help and --version print and exit.
 *
 * Return: PTDECODE_OK; or PTDECODE_USAGE or PTDECODE_FAILED, after the error was logged. The caller
 *         calls command_deinit() in any case.
 */
_must_check_ int command_parse(struct command *command, int argc, char **argv);
void command_deinit(struct command *command);

/*
 * Read the files of code that the command line names. They are foreign.
 *
 * Return: 0, and command->options has the code; or negative errno, after the error was logged.
 */
_must_check_ int command_read_code(struct command *command);

/* Log @message, which is freed; or, if it is NULL, the text of the negative errno @r. */
void command_log(int r, char *message);
