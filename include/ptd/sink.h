/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Sinks
 *
 * A sink turns the decoded stream into something that a person or another tool reads. A kind of
 * sink is one const table of operations: one of the library's, or a program's own. A sink sees
 * batches and events only: nothing of PT, perf or ELF.
 *
 * What a sink does with a batch has two halves, and a kind has one of them or both:
 *
 *	expand	makes bytes of the batch. It depends on nothing but the batch and what was fixed
 *		when the sink was opened, so several threads may expand batches of one sink at the
 *		same time, each with a worker of its own.
 *	write	takes the batches, and their bytes, one after the other in the order of the stream.
 *		Without it the bytes are written to the sink's output as they are.
 *
 * A program opens a sink of its own kind by ptd_sink_new() with its own table, like any other.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ptd/event.h"
#include "ptd/record.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ptd_output;
struct ptd_sink;
struct ptd_sink_worker;

/* --- opening a sink --------------------------------------------------------------------------- */

struct ptd_sink_config {
	size_t size; /* sizeof(struct ptd_sink_config): fields that a newer library adds are zero */

	/* ptd_decoder_info(): borrowed until the sink is freed. */
	const struct ptd_info *info;

	/*
	 * Open for writing, and the sink's once it is opened; -1 if it writes nothing. Of a kind
	 * that makes a directory, the directory in which its files are made; or a SOCK_SEQPACKET
	 * socket on which these files are asked for, by one message each:
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

	/* Each "NAME=VALUE", one of those that the kind takes; ended by NULL. Or NULL. */
	const char *const *options;

	void *userdata; /* of a program's own kind, for its open() */
};

/* Return: the value of the option @name; NULL if it is not among the config's. */
const char *ptd_sink_option(const struct ptd_sink_config *config, const char *name);

/* --- a kind of sink --------------------------------------------------------------------------- */

/* An option that a kind takes. */
struct ptd_sink_option {
	const char *name;
	const char *help; /* its value, and what that does: "N  rows of each table" */
};

/*
 * Operations may be NULL, but for open and free. They return 0 or negative errno; @output is the
 * sink's, and an error of it need not be looked at: it is returned by ptd_sink_finish().
 */
struct ptd_sink_ops {
	size_t size; /* sizeof(struct ptd_sink_ops): what a newer library adds is NULL */

	const char *name;
	const char *help; /* one line */

	/*
	 * NULL: it writes one file. Else it makes files in a directory: this one, made in the one
	 * that the user names.
	 */
	const char *directory;

	const struct ptd_sink_option *options; /* ended by one without a name; or NULL */

	/*
	 * Make the state of one sink. @config is the caller's; a directory in it is borrowed until
	 * the sink is freed. An option with a value that it does not take is -EINVAL.
	 */
	int (*open)(const struct ptd_sink_config *config, struct ptd_output *output,
		    void **ret_state);

	/* Take one event; all of them come before the first batch. */
	int (*event)(void *state, const struct ptd_event *event, struct ptd_output *output);

	/*
	 * What one thread remembers between two expansions, so that they are quicker; @ret_memory
	 * is handed to expand(). Their bytes may not depend on it.
	 */
	int (*remember)(const void *state, void **ret_memory);
	void (*forget)(void *memory);

	/* Make bytes of a batch: see above. */
	int (*expand)(const void *state, void *memory, const struct ptd_batch *batch,
		      struct ptd_output *output);

	/* Take the next batch of the stream, and the bytes that expand() made of it, if any. */
	int (*write)(void *state, const struct ptd_batch *batch, const void *bytes, size_t n_bytes,
		     struct ptd_output *output);

	/* The stream is over, or a call failed: write what is left. */
	int (*finish)(void *state, const struct ptd_stats *stats, struct ptd_output *output);

	/*
	 * What of the stream the format cannot hold, and was left out: a text for the user, the
	 * state's; or NULL if there is nothing. Asked after finish().
	 */
	const char *(*omission)(void *state);

	void (*free)(void *state);
};

/* The library's own kinds. Return: the kind number @i, from 0; NULL behind the last. */
const struct ptd_sink_ops *ptd_sink_at(size_t i);

/* Return: the library's kind called @name, or NULL. */
const struct ptd_sink_ops *ptd_sink_find(const char *name);

/* Add @size bytes to the output. Return: 0, or negative errno: the first error stays. */
int ptd_output_write(struct ptd_output *output, const void *bytes, size_t size);

/* Add formatted text of less than 4096 bytes; what is longer is cut. */
void ptd_output_printf(struct ptd_output *output, const char *format, ...)
    __attribute__((__format__(__printf__, 2, 3)));

/* --- one sink --------------------------------------------------------------------------------- */

/*
 * Open what a sink of this kind writes to, at @path: a file, which is created if it is not there
 * and is not yet emptied; or, of a kind that makes a directory, one that is made, or is there and
 * has nothing in it. NULL is standard output, which the latter refuses.
 *
 * Return: a descriptor, which the caller closes; -EISDIR, -ENOTEMPTY, -EEXIST (there is something
 *         other than a directory), or another negative errno.
 */
int ptd_sink_target_open(const struct ptd_sink_ops *ops, const char *path);

/*
 * Open a sink.
 *
 * Return: 0; or negative errno, and @reterr_message (if not NULL) is a text for the user, which the
 *         caller frees; or NULL if what errno says is all that there is to say.
 */
int ptd_sink_new(const struct ptd_sink_ops *ops, const struct ptd_sink_config *config,
		 struct ptd_sink **ret_sink, char **reterr_message);

/* Open what is at @path, emptied, and a sink that writes to it. Return: 0, or negative errno. */
int ptd_sink_open(const struct ptd_sink_ops *ops, const char *path, const struct ptd_info *info,
		  const char *const *options, struct ptd_sink **ret_sink);

/* Does it want events, or batches? */
bool ptd_sink_wants_events(const struct ptd_sink *sink);
bool ptd_sink_wants_batches(const struct ptd_sink *sink);

/* Take one event; all of them come before the first batch. Return: 0, or negative errno. */
int ptd_sink_event(struct ptd_sink *sink, const struct ptd_event *event);

/* Take the next batch of the stream: expand and write it. Return: as above. */
int ptd_sink_batch(struct ptd_sink *sink, const struct ptd_batch *batch);

/*
 * The stream is over, or a call failed: write what is left, and close the output.
 *
 * Return: 0; or negative errno, also of a write that failed before.
 */
int ptd_sink_finish(struct ptd_sink *sink, const struct ptd_stats *stats);

/* Return: what was left out, a text for the user that is the sink's; NULL: nothing. */
const char *ptd_sink_omission(struct ptd_sink *sink);

/* What was not finished is lost. Return: NULL. */
struct ptd_sink *ptd_sink_free(struct ptd_sink *sink);

/* --- in several threads ----------------------------------------------------------------------- */

/*
 * In the place of ptd_sink_batch(): each thread has a worker of its own and expands batches, any of
 * them and in any order; the thread that owns the sink writes them in the order of the stream.
 *
 * Return: 0, or negative errno.
 */
int ptd_sink_worker_new(const struct ptd_sink *sink, struct ptd_sink_worker **ret_worker);

/* The bytes are the worker's until it expands the next batch. Return: as above. */
int ptd_sink_expand(struct ptd_sink_worker *worker, const struct ptd_batch *batch);

/* Write the next batch, which @worker expanded last. Return: as above. */
int ptd_sink_write(struct ptd_sink *sink, const struct ptd_batch *batch,
		   const struct ptd_sink_worker *worker);

/* All workers are freed before the sink. Return: NULL. */
struct ptd_sink_worker *ptd_sink_worker_free(struct ptd_sink_worker *worker);

#ifdef __cplusplus
}
#endif
