/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Span log
 *
 * The spans of all tracks, kept until the stream is over, for formats that want one track after the
 * other. A span takes some six bytes, which go to a temporary file, so that the memory does not
 * depend on the length of the trace: of all tracks, SPANLOG_BUFFERED_MAX bytes are in memory at
 * most.
 *
 * An outer function (see viewtracks.h) is logged when it is found, and is read where it begins:
 * before the first function of its part.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/sink/export/viewtracks.h"
#include "util/spill.h"
#include "util/vec.h"

#define SPANLOG_BUFFERED_MAX ((size_t)32 << 20)

/* Numbers of spans: a gap has one by its reason, another mark by its kind, and a function by its
 * id. */
#define SPAN_MARK     _PTD_GAP_REASONS
#define SPAN_FUNCTION (SPAN_MARK + _PTD_MARK_KINDS)

/* Bytes that are only added, of many logs in one file. */
struct spanbytes {
	VEC(uint8_t) buffer; /* those that are not in the file yet */
	VEC(struct spanbytes_piece {
		uint64_t offset;
		uint32_t size;
	})
	pieces;
};

struct spanlog_track {
	struct spanbytes events;
	struct spanbytes outer; /* of each part: the outermost function first */
	uint64_t n_spans;
	uint64_t first, last;         /* the time of the first event and of the last one */
	uint64_t t;                   /* of the last event, but of no outer one */
	uint32_t part;                /* number of the part that goes on */
	VEC(struct span_event) found; /* its outer functions, the innermost first */
};

struct spanlog {
	struct spills spills; /* how much the file may have, at first */
	struct spill spill;
	size_t n_buffered;                /* bytes that are not in the file yet */
	VEC(struct spanlog_track) tracks; /* by their ids */
};

/* The beginning or the end of a span. */
struct span_event {
	uint64_t t;
	uint32_t span; /* its number */
	bool begins;
};

void spanlog_deinit(struct spanlog *log);

/* Return: the number of the span of a gap, or of what else @mark is. */
uint32_t span_of_mark(const struct ptd_mark *mark);

/* A span begins or ends on the track, as viewtracks_ops have it. Return: 0 or negative errno. */
_must_check_ int spanlog_begin(struct spanlog *log, const struct viewtrack *track, uint64_t t,
			       uint32_t span);
_must_check_ int spanlog_end(struct spanlog *log, const struct viewtrack *track, uint64_t t);

/* All is logged. Return: 0 or negative errno. */
_must_check_ int spanlog_finish(struct spanlog *log);

/* --- reading ---------------------------------------------------------------------------------- */

struct spanbytes_reader {
	const struct spanbytes *bytes; /* borrowed */
	size_t next;                   /* piece */
	uint8_t *buffer;
	size_t i, n;
};

/* Where one stands in the spans of a track. */
struct spanlog_reader {
	struct spanlog *log; /* borrowed */
	struct spanbytes_reader events, outer;
	uint64_t t;
	uint64_t n_outer; /* outer functions that begin next */
	uint64_t t_outer;
	VEC(uint32_t) open; /* spans */
};

/* Read the spans of the track, after spanlog_finish(). Return: 0 or -ENOMEM. */
_must_check_ int spanlog_read(struct spanlog *log, uint32_t track,
			      struct spanlog_reader *ret_reader);
void spanlog_reader_deinit(struct spanlog_reader *reader);

/*
 * Get the next event. Times do not go back, and spans nest.
 *
 * Return: 0; PTD_END: that was all; or negative errno.
 */
_must_check_ int spanlog_next(struct spanlog_reader *reader, struct span_event *ret_event);
