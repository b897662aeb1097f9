/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Sinks
 *
 * A sink turns the decoded stream into something a person or another tool reads. Each is one file
 * with one const table of operations, named in one line of the registry (decoder/sink/sink.c). A
 * sink sees batches and events only: nothing of PT, perf or ELF.
 */

#include "ptd/event.h"
#include "ptd/record.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ptd_sink;

struct ptd_sink_ops {
	const char *name;      /* what follows -f */
	const char *help;      /* one line */
	bool output_directory; /* -o names a directory it makes, not a file */

	/*
	 * Make one that writes to @path; NULL means standard output, which a sink that makes a
	 * directory refuses with -EISDIR.
	 *
	 * Return: 0, or negative errno.
	 */
	int (*open)(const struct ptd_sink_ops *ops, const char *path, const struct ptd_info *info,
		    struct ptd_sink **ret_sink);

	/*
	 * Take one event; all of them come before the first batch. NULL: it does not want them.
	 *
	 * Return: 0, or negative errno (the output could not be written).
	 */
	int (*event)(struct ptd_sink *sink, const struct ptd_event *event);

	/* Take one batch; NULL: it does not want them. Return: as above. */
	int (*batch)(struct ptd_sink *sink, const struct ptd_batch *batch);

	/* The stream is over: write what is left and flush. Return: 0, or negative errno. */
	int (*finish)(struct ptd_sink *sink, const struct ptd_stats *stats);

	/*
	 * What of the stream the format cannot hold, and was left out: a text for the user, the
	 * sink's; or NULL if there is nothing. Asked after finish(). NULL: the format holds all.
	 */
	const char *(*omission)(struct ptd_sink *sink);

	struct ptd_sink *(*free)(struct ptd_sink *sink);
};

/* The first member of every sink's own state. */
struct ptd_sink {
	const struct ptd_sink_ops *ops;
};

/* All sinks, ended by NULL. */
extern const struct ptd_sink_ops *const ptd_sinks[];

/* Return: the sink called @name, or NULL. */
const struct ptd_sink_ops *ptd_sink_find(const char *name);

#ifdef __cplusplus
}
#endif
