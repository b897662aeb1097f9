/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Requested outputs
 *
 * The outputs that a user asks for by "-f FORMAT" and "-o FILE": on the command line of ptdecode,
 * or by the arguments of its dlfilter.
 */

#include <stddef.h>

#include "base/base.h"
#include "decoder/cmd/creator.h"
#include "ptd/sink.h"

#define REQUESTED_MAX         8
#define REQUESTED_OPTIONS_MAX 8 /* for one output */

/* A kind of sink, and where it writes to. */
struct requested_output {
	const struct ptd_sink_ops *ops;                 /* borrowed */
	const char *path;                               /* NULL: standard output */
	const char *options[REQUESTED_OPTIONS_MAX + 1]; /* ended by NULL */
	struct ptd_sink_config config;
	struct creator creator; /* of a sink that makes files in a directory */
	struct ptd_sink *sink;  /* NULL until it is opened */
};

struct requested_outputs {
	struct requested_output items[REQUESTED_MAX];
	size_t n;
};

/*
 * Add the output that @format asks for, NAME:OPTION=VALUE,FLAG, which is cut up here and borrowed.
 * @also is a kind that is looked for beside the library's; or NULL.
 *
 * Return: 0; or -EINVAL, after the error was logged.
 */
_must_check_ int requested_add(struct requested_outputs *outputs, char *format,
			       const struct ptd_sink_ops *also);

/* Have the last output written to @path, which is borrowed. Return: likewise. */
_must_check_ int requested_set_path(struct requested_outputs *outputs, const char *path);

/*
 * Check that each output has all that its kind needs to be opened. Return: likewise.
 */
_must_check_ int requested_check(const struct requested_outputs *outputs);
