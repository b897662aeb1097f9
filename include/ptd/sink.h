/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Sinks
 *
 * A sink turns the decoded stream into something a person or another tool reads. Each is one file
 * with one const table of operations, named in one line of the registry (decoder/sink/sink.c). A
 * sink sees batches and events only: nothing of PT, perf or ELF. It opens no paths, so that it can
 * work in a process that may not: whoever uses it opens its target.
 */

#include <stdbool.h>
#include <stdint.h>

#include "ptd/event.h"
#include "ptd/record.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ptd_sink;

/* Where a sink writes. */
struct ptd_sink_target {
	/*
	 * Open for writing. Of a sink that makes a directory, the directory in which its files are
	 * made; or a SOCK_SEQPACKET socket on which these files are asked for, by one message each:
	 *
	 *	question: 1 byte, 1 if the file is to be created, 0 if it is there already; its
	 *	          name, 256 bytes, ending with a NUL
	 *	answer:   int32_t, 0 or negative errno; with 0, the file's descriptor (SCM_RIGHTS)
	 */
	int fd;
	bool is_emptied; /* a regular file is made empty first */

	/*
	 * How many bytes may be written; counted down, by all sinks that share it, and borrowed.
	 * What does not fit is not written: -EFBIG. NULL: no limit.
	 */
	uint64_t *room;
};

struct ptd_sink_ops {
	const char *name; /* what follows -f */
	const char *help; /* one line */
	/* NULL: -o names a file. Else it names a directory, in which this one is made for files. */
	const char *directory;

	/*
	 * Make one that writes to @target, whose descriptor it takes on success.
	 *
	 * Return: 0, or negative errno.
	 */
	int (*open)(const struct ptd_sink_ops *ops, const struct ptd_sink_target *target,
		    const struct ptd_info *info, struct ptd_sink **ret_sink);

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

/*
 * Open the target at @path: a file, which is created if it is not there and is not yet emptied; or,
 * of a sink that makes a directory, one that is made, or is there and has nothing in it. NULL is
 * standard output, which the latter refuses.
 *
 * Return: 0, and the caller closes the descriptor; -EISDIR, -ENOTEMPTY, -EEXIST (there is something
 *         other than a directory), or another negative errno.
 */
int ptd_sink_target_open(const struct ptd_sink_ops *ops, const char *path,
			 struct ptd_sink_target *ret_target);

/* Open the target at @path, and a sink that writes to it. Return: 0, or negative errno. */
int ptd_sink_open(const struct ptd_sink_ops *ops, const char *path, const struct ptd_info *info,
		  struct ptd_sink **ret_sink);

#ifdef __cplusplus
}
#endif
