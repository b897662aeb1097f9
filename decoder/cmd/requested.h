/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Requested outputs
 *
 * The outputs that a user asks for by verbs and their options: on the command line of ptdecode, by
 * its --also, or by the arguments of its dlfilter.
 */

#include <stddef.h>

#include "base/base.h"
#include "decoder/cmd/sandbox.h"
#include "decoder/cmd/verb.h"
#include "decoder/sink/sink.h"

#define REQUESTED_MAX         8
#define REQUESTED_OPTIONS_MAX 8 /* for one output */

/* The options of one output, whose texts are borrowed. */
struct request {
	struct {
		const char *name, *value; /* NULL: a flag */
	} options[REQUESTED_OPTIONS_MAX];
	size_t n_options;
	const char *path;
	enum sink_positions positions;
	bool no_inlined_calls;
};

/* A kind of sink, and where it writes to. */
struct requested_output {
	const struct sink_ops *ops;               /* borrowed */
	const char *path;                         /* NULL: standard output */
	char *options[REQUESTED_OPTIONS_MAX + 1]; /* ended by NULL */
	struct sink_config config;
	struct helper creator; /* of a sink that makes files in a directory */
	struct sink *sink;     /* NULL until it is opened */
};

struct requested_outputs {
	struct requested_output items[REQUESTED_MAX];
	size_t n;
	char *texts[REQUESTED_MAX]; /* that requested_parse() has cut up */
	size_t n_texts;
};

/*
 * Note the option @id, if it is one of an output: that of a sink, -o, --lines or --inlines.
 *
 * Return: REQUESTED_NOTED; REQUESTED_OTHER (it is none of an output); or -EINVAL, after the error
 *         was logged.
 */
enum {
	REQUESTED_NOTED = 0,
	REQUESTED_OTHER = 1,
};
_must_check_ int requested_note(struct request *request, int id, const char *name,
				const char *value);

/*
 * Add the output of @verb with the options of @request.
 *
 * Return: 0; -ENOMEM; or -EINVAL, after the error was logged.
 */
_must_check_ int requested_add(struct requested_outputs *outputs, const struct verb *verb,
			       const struct request *request);

/*
 * Add the output that @text asks for, a verb with its options such as "calls --json -o FILE". The
 * state of getopt is lost. Return: likewise.
 */
_must_check_ int requested_parse(struct requested_outputs *outputs, const char *text);

/* Free the texts. The sinks belong to the caller. */
void requested_deinit(struct requested_outputs *outputs);
