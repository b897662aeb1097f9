/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Stream
 *
 * The task records of the processes of one user, in the sideband (daemon/sideband/sideband.h). They
 * lie in chunks that only grow at their end, in two epochs. When an epoch ends, the one before it
 * is freed, so a user's stream forgets only what is oldest in it.
 *
 * A stream knows which processes it has records of. The sideband sees to it that no other stream
 * has later ones of the same process: what a stream forgets is then always older than all that is
 * left of that process, and no mapping is believed longer than it was there.
 *
 * A stream that is all zeros is empty. The event loop calls all functions.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/base.h"
#include "daemon/source/kept.h"
#include "util/map.h"
#include "util/perf/codec.h"
#include "util/vec.h"

struct record;
struct sideband_chunk;
struct sideband_view;

/* Bytes of a chunk, with its header. */
#define STREAM_CHUNK_SIZE KEPT_SLOT_SIZE

struct chunks {
	VEC(struct sideband_chunk *) list;
};

struct epoch {
	struct chunks head; /* what was known when it began, as records */
	struct chunks body; /* what was added since */
	/* When the stream was complete, if it began this epoch of itself. 0: all streams began one
	 * at that time. */
	uint64_t since_ns;
	struct map pids; /* that it has records of → 1; 0: another stream has later ones */
};

struct stream {
	uint32_t number; /* its place among the streams */
	bool is_used;
	bool has_before;
	uid_t uid;
	uint64_t n_epochs;
	uint64_t time;      /* of its latest record */
	uint64_t n_dropped; /* records that went though those of others from that time stayed */
	struct epoch before, now;
};

/* Give back a reference to a chunk of a view. */
void chunk_unref(struct sideband_chunk *chunk);

/* Return: a chunk that is not kept, with @size bytes of records written by @write into @room bytes;
 *         NULL if there is no memory. */
struct sideband_chunk *chunk_of(size_t (*write)(const void *userdata, void *to, size_t room),
				const void *userdata);

/* Add the chunk, whose reference becomes the view's. */
void chunk_view(struct sideband_chunk *chunk, struct sideband_view *view);

/* Free all records. The numbers of its epochs go on. */
void stream_clear(struct stream *stream);

/* Return: bytes of the chunks of an epoch, or of both. */
uint64_t epoch_bytes(const struct epoch *epoch);
uint64_t stream_bytes(const struct stream *stream);

/* Begin another epoch at @since_ns (see struct epoch). The one before ends, and with @forget the
 * present one, too. What has ended is freed, but the stream still knows which processes the last
 * one had records of. Return: how many records were freed, heads not counted. */
uint64_t stream_begin(struct stream *stream, uint64_t since_ns, bool forget);

/* What the epoch before has records of is known in the present one, too, which did not begin with
 * that. Return: 0, or -ENOMEM. */
_must_check_ int stream_learn_before(struct stream *stream);

/* Free what the present epoch began with. */
void stream_forget_head(struct stream *stream);

/* Return: whether it has records of the process, and no other stream has later ones. */
bool stream_has(const struct stream *stream, uint32_t pid);

/* The present epoch has records of the process. Return: 0, or -ENOMEM. */
_must_check_ int stream_learn(struct stream *stream, uint32_t pid);

/* Another stream has later records of the process. */
void stream_unlearn(struct stream *stream, uint32_t pid);

/* Return: whether @size more bytes fit the last chunk of the head, or the body. */
bool stream_fits(const struct stream *stream, bool is_head, size_t size);

/* Append a record to the head or body of the present epoch; if it does not fit the last chunk, a
 * new one lies in @kept, which may be NULL. Return: 0, or -ENOMEM. */
_must_check_ int stream_append(struct stream *stream, bool is_head, struct kept *kept,
			       const void *bytes, size_t size);

/* The epoch with which a view of the stream begins. */
const struct epoch *stream_first(const struct stream *stream);

/* Return: how many chunks a view of the stream has, at most. */
size_t stream_n_chunks(const struct stream *stream);

/* Add the chunks, with a reference each. */
void stream_view(const struct stream *stream, struct sideband_view *view);

/* --- what is kept --- */

struct kept_stream stream_keep(const struct stream *stream);

/* Make room for the chunks of another process's stream, which are not there yet, in the place
 * of what there is. Return: 0; -EBADMSG if what was kept makes no sense; or -ENOMEM. */
_must_check_ int stream_expect(struct stream *stream, const struct kept_stream *kept);

/* Have the streams, KEPT_STREAMS_MAX of them, take the chunks of another process. Return: 0, or
 * -ENOMEM. */
_must_check_ int streams_find(struct stream *streams, struct kept *kept,
			      const struct kept_stream *keeps);

/* All chunks were found. Return: 0, or -EBADMSG if one is missing or does not hold whole
 * records. */
_must_check_ int stream_settle(struct stream *stream, const struct kept_stream *kept);

/* --- a walk over records of several streams, by time --- */

enum stream_row {
	STREAM_BEFORE_HEAD,
	STREAM_BEFORE_BODY,
	STREAM_NOW_HEAD,
	STREAM_NOW_BODY,
};

/* Call @note for the records of rows @first to @last of all streams, the earliest first, and those
 * of one stream in their order. Return: 0, or the first error of @note. */
int streams_walk(struct stream *streams, enum stream_row first, enum stream_row last,
		 int (*note)(void *userdata, struct stream *stream, enum stream_row row,
			     const struct record *record),
		 void *userdata);
