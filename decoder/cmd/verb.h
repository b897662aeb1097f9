/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Verbs
 *
 * The grammar of ptdecode's command line: its verbs, and the options that each verb takes. The
 * parser, the help, and by the help the completion of bash, derive from the two tables in verb.c
 * and from the options that the kinds of sinks state.
 *
 * A verb shows the recording by one kind of sink. To add one, add the sink to the registry in
 * decoder/sink/sink.c and to the table of verbs.
 */

#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>

#include "decoder/sink/sink.h"

/* What stands before the name of a format. */
#define VERB_EXPORT_WORD "export"

enum verb_group {
	VERB_ASK,
	VERB_OPEN,
	VERB_EXPORT, /* export FORMAT: the verb has two words */
	_VERB_GROUPS,
};

/* Properties of verbs, which decide whether a verb takes an option. */
enum {
	VERB_WRITES = 1 << 0,    /* it has an output */
	VERB_ENGINE = 1 << 1,    /* it decodes with one engine */
	VERB_JOINS = 1 << 2,     /* another verb can show the same decode */
	VERB_POSITIONS = 1 << 3, /* it shows source lines if asked for */
	VERB_CORE = 1 << 4,      /* it uses a core file */
	VERB_INLINES = 1 << 5,   /* it shows calls of functions that were inlined, if it may */
};

struct verb {
	const struct sink_ops *ops; /* NULL: both engines decode, and are compared */
	enum verb_group group;
	unsigned properties;
	const char *name, *help; /* NULL: those of @ops */
};

enum verb_section {
	VERB_OUTPUT, /* options of one output; what follows is for all of them */
	VERB_DECODING,
	VERB_PART,
	VERB_FILES,
	VERB_RAW,
	VERB_CPU,
};

/* Options of ptdecode itself. */
enum verb_option_id {
	VERB_OPT_ALSO = 256,
	VERB_OPT_LINES,
	VERB_OPT_INLINES,
	VERB_OPT_MAX_OUTPUT,
	VERB_OPT_MAX_SPILL,
	VERB_OPT_THREADS,
	VERB_OPT_TIME,
	VERB_OPT_CPU,
	VERB_OPT_PID,
	VERB_OPT_ALL,
	VERB_OPT_TID,
	VERB_OPT_COMM,
	VERB_OPT_SYMBOL,
	VERB_OPT_OBJECT,
	VERB_OPT_LAST,
	VERB_OPT_CORE,
	VERB_OPT_STATE_DIR,
	VERB_OPT_FORCE,
	VERB_OPT_DEBUG_DIR,
	VERB_OPT_BUILDID_DIR,
	VERB_OPT_SYMFS,
	VERB_OPT_DEBUGINFOD,
	VERB_OPT_INSTR_MAP,
	VERB_OPT_OVNI,
	VERB_OPT_RAW_PT,
	VERB_OPT_RAW_PAGES,
	VERB_OPT_RAW_ELF,
	VERB_OPT_RAW_CODE,
	VERB_OPT_FILTER,
	VERB_OPT_CPU_MODEL,
	VERB_OPT_MTC_FREQ,
	VERB_OPT_NOM_FREQ,
	VERB_OPT_CPUID_15,
	VERB_OPT_VERSION,
	VERB_OPT_OF_SINK, /* and above: an option that kinds of sinks state */
};

struct verb_option {
	int id; /* a letter, or an enum verb_option_id */
	enum verb_section section;
	unsigned needs;                  /* properties of the verb; 0: each verb takes the option */
	const char *name, *value, *help; /* as those of a struct sink_option; a value that begins
					  * with "=" may be left out */
};

/* Return: the name of the verb; that of an export is its format. */
const char *verb_name(const struct verb *verb);

/* Return: the verb or format of this name, or NULL. */
const struct verb *verb_of_name(const char *name);

/*
 * Find the verb that the first of @words states, which NULL ends. @ret_n_words is how many words it
 * has.
 *
 * Return: the verb; or NULL, after the error was logged.
 */
const struct verb *verb_find(char *const *words, size_t *ret_n_words);

/* Return: the option @id of ptdecode itself, which the verb does not take; NULL: it does, or the
 * option is none of these. */
const struct verb_option *verb_refused(const struct verb *verb, int id);

/* All options, in the form that getopt_long() takes. */
#define VERB_OPTIONS_MAX 80
void verb_options(struct option ret_options[static VERB_OPTIONS_MAX]);

/*
 * Take the next option of a command line, as getopt_long() does, which keeps its state in optind.
 * @ret_name is the option's long name; NULL if its letter was given.
 *
 * Return: its id; -1 behind the last option; or -EINVAL, after the error was logged.
 */
int verb_next_option(int argc, char **argv, const struct option *options, const char **ret_name);

/* Return: whether the verb takes the option of a sink with this name, which @ret_option then is. */
bool verb_takes(const struct verb *verb, const char *name, const struct sink_option **ret_option);

/* Print the help of all verbs; of one, with each option that it takes; or of the word export. */
void verb_help(FILE *f);
void verb_help_of(FILE *f, const struct verb *verb);
void verb_help_export(FILE *f);
