/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Sinks
 *
 * A sink turns the decoded stream into something that a person or another tool reads. A kind of
 * sink is one const table of operations. A sink sees only batches, calls and sideband records, and
 * nothing of PT, perf or ELF.
 *
 * A kind takes the stream in one or two of these ways:
 *
 *	expand	makes bytes of a batch. It depends only on the batch and on what was fixed when
 *		the sink was opened. Several threads may therefore expand batches of one sink at
 *		the same time.
 *	write	takes the batches, and their bytes, one after the other in the order of the stream.
 *		Without this operation the bytes are written to the sink's output as they are.
 *	batch	takes the batches in the order of the stream, for a kind that does not expand.
 *	calls	takes the calls that the call layer (ptd/calls.h) finds in each batch, and mark the
 *		marks between them. The sink has the layer.
 *
 * What expand() reads does not change while it works, although other threads expand and write
 * other batches: neither the batch and what it points to (blocks, objects and symbols, with their
 * ids), nor the state, since write() may change only such parts of it as expand() does not read.
 * Counts and memories of a traced thread, of an output file or of the whole stream belong to
 * write(). Batches are written one at a time, so write() should leave to expand() what work it can.
 *
 * To add a kind: define its table in a file of its own, declare it in sinks.h, and give it a verb
 * in decoder/cmd/verb.c.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "ptd/calls.h"
#include "ptd/record.h"
#include "ptd/sideband.h"

struct json;
struct ptd_decoder;
struct output;
struct sink;
struct ptd_threads;

/* --- opening a sink --------------------------------------------------------------------------- */

/* Which source positions (see ptd_decoder_positions()) a sink shows, if it lists instructions. */
enum sink_positions {
	SINK_NO_POSITIONS,
	SINK_LINES,   /* file and line of each instruction */
	SINK_INLINES, /* also the functions, and where those that were inlined were called */
};

struct sink_config {
	/* The result of ptd_decoder_info(), borrowed until the sink is freed. */
	const struct ptd_info *info;

	/*
	 * The descriptor that the sink writes to. It belongs to the sink once that is opened; -1 if
	 * the sink writes nothing. For a kind that makes directories, it is the directory that the
	 * user named, which has them; or a SOCK_SEQPACKET socket on which the sink asks for each of
	 * its files by one message:
	 *
	 *	question: 1 byte, 0 to open a file, 1 to create it, 2 to rename it; the name of the
	 *	          file, DIRECTORY/FILE, 256 bytes, ending with a NUL; its new name,
	 *	          likewise, if it is renamed
	 *	answer:   int32_t, 0 or negative errno; with 0, the descriptor (SCM_RIGHTS) of a
	 *	          file that was opened or created
	 */
	int fd;
	bool is_emptied; /* if @fd is a regular file, it is made empty first */

	/*
	 * How many bytes may still be written. Borrowed; all sinks that share it count it down.
	 * Bytes beyond it are not written, and the error is -EFBIG. NULL: no limit.
	 */
	uint64_t *room;

	/* Options that the kind takes, "NAME=VALUE" or of a flag "NAME", ended by NULL; or NULL. */
	const char *const *options;

	void *userdata; /* for the kind's open() */

	/*
	 * The decoder, borrowed, which is asked for source positions and inlined functions; NULL:
	 * none are known.
	 */
	struct ptd_decoder *decoder;
	enum sink_positions positions;

	/* Functions that were inlined are not given out as calls. */
	bool no_inlined_calls;

	/*
	 * Threads that the sink may give work to, such as compressing; NULL: there are none.
	 * Borrowed. The thread that made them is the one that calls the sink.
	 */
	struct ptd_threads *threads;

	/* For open(): the layer of a kind that takes calls, borrowed until the sink is freed. */
	struct ptd_calls *calls;
	uint64_t n_rows; /* of a table of text that are shown */
};

/*
 * Return: the value of the option @name, borrowed from @config, which is empty for a flag; NULL if
 *         @config lacks it.
 */
const char *sink_option(const struct sink_config *config, const char *name);

/* --- a kind of sink --------------------------------------------------------------------------- */

/* Options of a kind that is_sieved. */
#define SINK_SIEVE_OPTIONS                                                                   \
	{ .name = "min-duration",                                                            \
	  .value = "TIME",                                                                   \
	  .help = "leave out calls that took less, as 10us" },                               \
	{                                                                                    \
		.name = "max-depth", .value = "N", .help = "leave out calls that are deeper" \
	}

/* An option that a kind of sink takes. */
struct sink_option {
	const char *name;
	const char *value; /* the form of its value; NULL: it has none */
	const char *help;  /* its effect, in one line: "rows of each table" */
	bool is_required;  /* the kind cannot do without it */
};

/*
 * All operations may be NULL. They return 0 or negative errno. @output belongs to the sink. An
 * operation need not check writes to @output: sink_finish() returns their error.
 */
struct sink_ops {
	const char *name;
	const char *help; /* what the kind writes, in one line */

	/*
	 * NULL: the kind writes one file. Otherwise it makes files in directories of these names,
	 * ended by NULL, which are made in the directory that the user names.
	 */
	const char *const *directories;

	/*
	 * Ended by an option whose name is NULL; or NULL. The frame reads "rows", and "json" of a
	 * kind that has the operation of this name.
	 */
	const struct sink_option *options;

	size_t state_size; /* the sink has so many bytes, 0 at first, as the kind's state */

	/*
	 * Begin. @config belongs to the caller; if its fd is a directory, that is borrowed until
	 * the sink is freed. The error of an option with a wrong value is -EINVAL.
	 */
	int (*open)(void *state, const struct sink_config *config, struct output *output);

	/* Take one sideband record. All of them come before the first batch. */
	int (*sideband)(void *state, const struct ptd_sideband *record);

	/*
	 * Make what one thread remembers between two expansions, so that they are quicker. Each
	 * expand() of the thread gets @ret_memory; its bytes may not depend on that. forget() frees
	 * the memory.
	 */
	int (*remember)(const void *state, void **ret_memory);
	void (*forget)(void *memory);

	/*
	 * Make bytes of a batch; see the top of this file. @output has no file, and may hold other
	 * batches' bytes already; or it is the sink's, if there is no write().
	 */
	int (*expand)(const void *state, void *memory, const struct ptd_batch *batch,
		      struct output *output);

	/*
	 * Take the next batch of the stream, and the bytes that expand() made of it. They need not
	 * be aligned.
	 */
	int (*write)(void *state, const struct ptd_batch *batch, const void *bytes, size_t n_bytes);

	/*
	 * Take the next batch, before its calls. @t_end is the time of the last run, mark or call
	 * of a log in it. Of a kind that takes calls, @batch is NULL when the stream is over,
	 * before what is open is left.
	 */
	int (*batch)(void *state, const struct ptd_batch *batch, uint64_t t_end);

	/*
	 * Take calls of one thread, in their order; and a mark, which stands where it happened
	 * among the calls of its thread. The functions that a gap ends are left before the gap. A
	 * kind without calls() is not opened for an input that is a log of calls.
	 */
	int (*calls)(void *state, const struct ptd_call_batch *calls);
	int (*mark)(void *state, const struct ptd_slice *slice, const struct ptd_mark *mark);

	/* The stream is over, or a call failed: write what was not written yet. */
	int (*finish)(void *state, const struct ptd_stats *stats, struct output *output);

	/*
	 * Of a kind that answers in the end, after finish(): write its text, which is cut at the
	 * width of the terminal; or members of its JSON document, which the frame opens with
	 * "format" and "clock", and closes.
	 */
	int (*text)(void *state, const struct ptd_stats *stats, struct output *output);
	int (*json)(void *state, const struct ptd_stats *stats, struct json *json);

	/*
	 * Return: what was left out because the format cannot hold it, a text for the user that
	 * belongs to @state; NULL: nothing. This is called after finish().
	 */
	const char *(*omission)(void *state);

	/* Return: whether there was nothing of what the sink was asked about. This is called after
	 * finish(). */
	bool (*is_empty)(const void *state);

	/* Free what the state has, also of a sink whose open() failed. */
	void (*close)(void *state);

	/*
	 * The kind shows each call: the frame reads SINK_SIEVE_OPTIONS, and leaves calls out before
	 * calls() (decoder/sink/callsieve.h).
	 */
	bool is_sieved;

	/* All is written by finish(): until then a terminal is free for something else. */
	bool writes_last;

	bool no_symbols; /* the kind shows no symbols: see ptd_options.no_symbols */
};

/* Add @size bytes to the output. Return: 0; or negative errno, which is that of the first error. */
int output_write(struct output *output, const void *bytes, size_t size);

/* Add formatted text of less than 4096 bytes. Longer text is cut. */
void output_printf(struct output *output, const char *format, ...)
    __attribute__((__format__(__printf__, 2, 3)));

/* --- one sink --------------------------------------------------------------------------------- */

/*
 * Open what a sink of this kind writes to, at @path. This is a file, which is created if it does
 * not exist, and is not emptied yet. For a kind that makes directories, it is a directory, which is
 * created if it does not exist, together with those of the kind, and must have nothing else; these
 * must be empty. If @path is NULL, it is standard output, which a kind that makes directories
 * refuses.
 *
 * Return: a descriptor, which the caller closes; -EISDIR (@path is a directory, or is NULL and must
 *         be one); -ENOTEMPTY; -EEXIST (@path is not a directory); or another negative errno.
 */
int sink_target_open(const struct sink_ops *ops, const char *path);

/*
 * Open a sink. On success @config->fd belongs to the sink.
 *
 * Return: 0; or negative errno. On an error @reterr_message (if not NULL) is a text for the user,
 *         which the caller frees; or NULL if errno says all.
 */
int sink_new(const struct sink_ops *ops, const struct sink_config *config, struct sink **ret_sink,
	     char **reterr_message);

/* Return: whether the sink takes sideband records, or batches. */
bool sink_wants_sideband(const struct sink *sink);
bool sink_wants_batches(const struct sink *sink);

/*
 * Take one sideband record. All of them come before the first batch.
 *
 * Return: 0, or negative errno.
 */
int sink_take_sideband(struct sink *sink, const struct ptd_sideband *record);

/* Take the next batch of the stream: expand and write it. Return: 0, or negative errno. */
int sink_batch(struct sink *sink, const struct ptd_batch *batch);

/* Take the next calls of a log. Return: likewise. */
int sink_logged(struct sink *sink, const struct ptd_logged *logged);

/*
 * The stream is over, or a call failed: write what was not written yet, and close the output.
 *
 * Return: 0; or negative errno, which may be that of an earlier write.
 */
int sink_finish(struct sink *sink, const struct ptd_stats *stats);

/* Return: what was left out, a text for the user that belongs to the sink; NULL: nothing. */
const char *sink_omission(struct sink *sink);

/* Return: whether there was nothing of what the sink was asked about. */
bool sink_is_empty(const struct sink *sink);

/* Return: how many calls were left out because of SINK_SIEVE_OPTIONS. */
uint64_t sink_n_left_out(const struct sink *sink);

/* Return: the least duration, in ns, that no more than one of @n calls has; UINT64_MAX: none has,
 * or it is not known. */
uint64_t sink_duration_of(const struct sink *sink, uint64_t n);

/* Free the sink. Without sink_finish() its last bytes are lost. Return: NULL. */
struct sink *sink_free(struct sink *sink);

/* --- in several threads ----------------------------------------------------------------------- */

/*
 * A writer takes the batches of a stream for several sinks. Threads expand them, and the calling
 * thread has the sinks write them, in the order of the stream: what the sinks write does not depend
 * on the number of threads. A few batches at a time are in work, however slow an output is.
 */
struct writer;

/*
 * Make a writer. @threads and the sinks are borrowed, and must be freed after the writer. @threads
 * may be NULL: there is one thread.
 *
 * Return: 0, or negative errno.
 */
int writer_new(struct ptd_threads *threads, struct sink *const *sinks, size_t n_sinks,
	       struct writer **ret_writer);

/*
 * Take the next batch, which need not stay valid. The blocks and symbols that it points to, and its
 * hold, must be the decoder's, which is freed after the writer.
 *
 * Return: 0; or negative errno of a sink, which every later call returns again.
 */
int writer_batch(struct writer *writer, const struct ptd_batch *batch);

/* Take the next calls of a log. Return: likewise. */
int writer_logged(struct writer *writer, const struct ptd_logged *logged);

/* Wait until the sinks have written all batches. Return: as writer_batch(). */
int writer_flush(struct writer *writer);

/* Return: the sink that failed; NULL if none did, or if there was no memory for the batch. */
struct sink *writer_failed(const struct writer *writer);

/* Free the writer. Batches since the last writer_flush() may be lost. Return: NULL. */
struct writer *writer_free(struct writer *writer);

/* --- the values of options -------------------------------------------------------------------- */

/*
 * The values of the options that several kinds of sinks take. Each function leaves @ret_value alone
 * if the option was not given.
 */

/* Parse a decimal number. Return: 0; or -EINVAL if the value is none. */
_must_check_ int option_number(const struct sink_config *config, const char *name,
			       uint64_t *ret_value);

/*
 * Parse a duration in the unit of the stream's clock: a number of ns or of TSC ticks; with ns, it
 * may end with ns, us, ms or s.
 *
 * Return: 0; or -EINVAL if the value is none, or if the stream has no time.
 */
_must_check_ int option_duration(const struct sink_config *config, const char *name,
				 uint64_t *ret_value);
