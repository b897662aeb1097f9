/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Session
 *
 * An input that was opened, whatever it is: a trace and its timeline, or batches of something that
 * has been decoded before; the objects and symbols that go with it; what programs noted themselves;
 * and what is to be said of it.
 */

#include <pthread.h>

#include "base/base.h"
#include "decoder/file/reading.h"
#include "decoder/pt/engine.h"
#include "decoder/sideband/filtered.h"
#include "decoder/trace/trace.h"
#include "decoder/util/fetch.h"
#include "ptd/decode.h"
#include "util/vec.h"

struct decoder_feed;

struct session {
	char *name; /* what messages call the input */
	struct ptd_info info;
	struct reading reading;

	/* Of an input that has batches instead of PT, they are empty. */
	struct trace *trace;
	struct timeline *timeline;
	struct filtered filtered;

	struct batchsource *source; /* of such an input; or NULL */
	struct overlay *overlay;    /* what programs noted themselves; or NULL */

	struct objects *objects;
	struct resolver *resolver;
	pthread_mutex_t fetch_mutex; /* held by the thread that asks for a file */
	struct fetch fetch;

	VEC(const char *) complaints; /* as @info has them, unless they are those of @source */
	VEC(char *) texts;            /* those of them that are the session's */
	bool has_ended;               /* what is known only in the end is among them */
};

/* Return: what messages call the input that @options name. */
const char *session_name_of(const struct ptd_options *options);

/*
 * Open what @options name, or what @feed makes if it is not NULL.
 *
 * Return: 0; or negative errno, with @reterr_message where it can be told better than by errno. In
 *         both cases session_deinit() is to be called.
 */
_must_check_ int session_open(struct session *session, const struct ptd_options *options,
			      const struct decoder_feed *feed, char **reterr_message);
void session_deinit(struct session *session);

/* Return: how its PT is to be decoded, but for the spans, and for what engines share. What the user
 *         states of the CPU counts before what the input states. */
struct engine_config session_engine_config(const struct session *session,
					   const struct ptd_options *options);

/*
 * Look whether the input is what was meant. What was read is as it was all the same. @r is what
 * decoding came to: 0, or negative errno. (Pieces that were read ahead, but were not needed, do not
 * count.)
 *
 * Return: 0; or -ESTALE or -EKEYREJECTED, and @reterr_message, if a file was changed since it was
 *         opened, or is not the one that was written.
 */
_must_check_ int session_check(const struct session *session, int r, char **reterr_message);

/*
 * All was decoded: complain about threads that only the overlay knows, unless it was not laid over,
 * and, if @lacks_kernel, that the recording has no copy of the kernel.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int session_end(struct session *session, const struct overlay *overlay,
			     bool lacks_kernel);
