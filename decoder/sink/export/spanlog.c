/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/sink/export/spanlog.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "ptd/decode.h"
#include "util/varint.h"

#define PIECE_SIZE ((size_t)1 << 14) /* bytes in memory before they go to the file */
#define ENTRY_MAX  (2 * VARINT_MAX)

/* What an entry of the events begins with. All others are spans that begin. */
enum {
	CODE_END,
	CODE_PART, /* the outer functions of the next part begin */
	_CODES,
};

static void bytes_deinit(struct spanbytes *bytes)
{
	vec_deinit(&bytes->buffer);
	vec_deinit(&bytes->pieces);
}

void spanlog_deinit(struct spanlog *log)
{
	for (size_t i = 0; i < log->tracks.n; i++) {
		bytes_deinit(&log->tracks.items[i].events);
		bytes_deinit(&log->tracks.items[i].outer);
		vec_deinit(&log->tracks.items[i].found);
	}
	vec_deinit(&log->tracks);
	spill_deinit(&log->spill);
}

uint32_t span_of_mark(const struct ptd_mark *mark)
{
	if (mark->kind == PTD_MARK_GAP && mark->reason < _PTD_GAP_REASONS)
		return mark->reason;
	return SPAN_MARK + mark->kind;
}

/* --- writing ---------------------------------------------------------------------------------- */

/* Move what is in memory to the file. Return: 0 or negative errno. */
static int flush(struct spanlog *log, struct spanbytes *bytes)
{
	const struct spanbytes_piece piece = { .offset = log->spill.size,
					       .size = (uint32_t)bytes->buffer.n };
	int r;

	log->spill.spills = &log->spills;
	r = spill_write(&log->spill, bytes->buffer.items, bytes->buffer.n);
	if (r < 0)
		return r;
	log->n_buffered -= bytes->buffer.n;
	bytes->buffer.n = 0;
	return vec_push(&bytes->pieces, piece);
}

/* The same of all tracks, whose memory is freed. */
static int flush_all(struct spanlog *log)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < 2 * log->tracks.n; i++) {
		struct spanlog_track *track = &log->tracks.items[i / 2];
		struct spanbytes *bytes = i % 2 ? &track->outer : &track->events;

		if (bytes->buffer.n > 0)
			r = flush(log, bytes);
		if (r == 0)
			vec_deinit(&bytes->buffer);
	}
	return r;
}

/* Add an entry of two numbers, which is never in two pieces. Return: 0 or negative errno. */
static int add_entry(struct spanlog *log, struct spanbytes *bytes, uint64_t a, uint64_t b)
{
	uint8_t *p;
	int r = 0;

	if (log->n_buffered > SPANLOG_BUFFERED_MAX - ENTRY_MAX)
		r = flush_all(log);
	else if (bytes->buffer.n > PIECE_SIZE - ENTRY_MAX)
		r = flush(log, bytes);
	if (r == 0)
		r = vec_reserve(&bytes->buffer, ENTRY_MAX);
	if (r < 0)
		return r;
	p = bytes->buffer.items + bytes->buffer.n;
	p = varint_put(varint_put(p, a), b);
	log->n_buffered += (size_t)(p - bytes->buffer.items) - bytes->buffer.n;
	bytes->buffer.n = (size_t)(p - bytes->buffer.items);
	return 0;
}

/* Add an event at the end of the track. Return: 0 or negative errno. */
static int add_event(struct spanlog *log, struct spanlog_track *track, uint64_t t, uint64_t code)
{
	const uint64_t before = track->t;

	if (track->n_spans == 0)
		track->first = t;
	track->n_spans += code >= _CODES;
	if (t < before)
		t = before;
	track->t = track->last = t;
	return add_entry(log, &track->events, code, t - before);
}

/* The part is over: write its outer functions. Return: 0 or negative errno. */
static int end_part(struct spanlog *log, struct spanlog_track *track)
{
	uint64_t t = 0;
	int r;

	if (track->part == 0)
		return 0;
	r = add_entry(log, &track->outer, track->found.n, 0);
	while (r == 0 && track->found.n > 0) {
		const struct span_event *outer = &track->found.items[--track->found.n];

		r = add_entry(log, &track->outer, outer->span, outer->t - t);
		t = outer->t;
	}
	return r;
}

/* Return: what is kept of the track; NULL: no memory. */
static struct spanlog_track *get_track(struct spanlog *log, uint32_t id)
{
	while (log->tracks.n <= id)
		if (vec_push(&log->tracks, {}) < 0)
			return NULL;
	return &log->tracks.items[id];
}

int spanlog_begin(struct spanlog *log, const struct viewtrack *viewtrack, uint64_t t, uint32_t span)
{
	struct spanlog_track *track = get_track(log, viewtrack->id);
	int r = 0;

	if (!track)
		return -ENOMEM;
	if (span >= SPAN_FUNCTION && track->part != viewtrack->part) {
		r = end_part(log, track);
		track->part = viewtrack->part;
		if (r == 0)
			r = add_event(log, track, track->t, CODE_PART);
		if (r < 0)
			return r;
	}
	if (span >= SPAN_FUNCTION && t < viewtrack->first) {
		track->n_spans++;
		if (t < track->first)
			track->first = t;
		return vec_push(&track->found, { .t = t, .span = span, .begins = true });
	}
	return add_event(log, track, t, (uint64_t)span + _CODES);
}

int spanlog_end(struct spanlog *log, const struct viewtrack *viewtrack, uint64_t t)
{
	struct spanlog_track *track = get_track(log, viewtrack->id);

	return track ? add_event(log, track, t, CODE_END) : -ENOMEM;
}

int spanlog_finish(struct spanlog *log)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < log->tracks.n; i++)
		r = end_part(log, &log->tracks.items[i]);
	return r;
}

/* --- reading ---------------------------------------------------------------------------------- */

static int read_piece(const struct spanlog *log, const struct spanbytes_piece *piece, uint8_t *to)
{
	size_t n = 0;

	while (n < piece->size) {
		const ssize_t size = pread(log->spill.fd, to + n, piece->size - n,
					   (off_t)(log->spill.start + piece->offset + n));

		if (size < 0 && errno != EINTR)
			return -errno;
		if (size == 0)
			return -EIO;
		n += size > 0 ? (size_t)size : 0;
	}
	return 0;
}

/* Get what follows in memory. Return: 0; PTD_END: nothing; or negative errno. */
static int fill(const struct spanlog *log, struct spanbytes_reader *reader)
{
	const struct spanbytes *bytes = reader->bytes;
	const size_t next = reader->next++;

	reader->i = reader->n = 0;
	if (next > bytes->pieces.n || (next == bytes->pieces.n && bytes->buffer.n == 0))
		return PTD_END;
	if (!reader->buffer)
		reader->buffer = malloc(PIECE_SIZE);
	if (!reader->buffer)
		return -ENOMEM;
	if (next < bytes->pieces.n) {
		reader->n = bytes->pieces.items[next].size;
		return read_piece(log, &bytes->pieces.items[next], reader->buffer);
	}
	reader->n = bytes->buffer.n;
	memcpy(reader->buffer, bytes->buffer.items, reader->n);
	return 0;
}

static inline int get_entry(const struct spanlog *log, struct spanbytes_reader *reader,
			    uint64_t *ret_a, uint64_t *ret_b)
{
	const int r = reader->i < reader->n ? 0 : fill(log, reader);
	const uint8_t *p;

	if (r != 0)
		return r;
	p = varint_get(varint_get(reader->buffer + reader->i, ret_a), ret_b);
	reader->i = (size_t)(p - reader->buffer);
	return 0;
}

int spanlog_read(struct spanlog *log, uint32_t id, struct spanlog_reader *ret_reader)
{
	const struct spanlog_track *track = get_track(log, id);

	if (!track)
		return -ENOMEM;
	*ret_reader = (struct spanlog_reader){ .log = log,
					       .events.bytes = &track->events,
					       .outer.bytes = &track->outer };
	return 0;
}

void spanlog_reader_deinit(struct spanlog_reader *reader)
{
	free(reader->events.buffer);
	free(reader->outer.buffer);
	vec_deinit(&reader->open);
}

/* Return: 0 or -ENOMEM. */
static int begin_span(struct spanlog_reader *reader, uint64_t t, uint64_t span,
		      struct span_event *ret_event)
{
	*ret_event = (struct span_event){ .t = t, .span = (uint32_t)span, .begins = true };
	return vec_push(&reader->open, ret_event->span);
}

static int next_outer(struct spanlog_reader *reader, struct span_event *ret_event)
{
	uint64_t span, more;
	const int r = get_entry(reader->log, &reader->outer, &span, &more);

	if (r != 0)
		return r;
	reader->n_outer--;
	reader->t_outer += more;
	return begin_span(reader, reader->t_outer > reader->t ? reader->t_outer : reader->t, span,
			  ret_event);
}

int spanlog_next(struct spanlog_reader *reader, struct span_event *ret_event)
{
	while (reader->n_outer == 0) {
		uint64_t code, more, unused;
		int r = get_entry(reader->log, &reader->events, &code, &more);

		if (r != 0)
			return r;
		reader->t += more;
		if (code >= _CODES)
			return begin_span(reader, reader->t, code - _CODES, ret_event);
		if (code == CODE_END && reader->open.n > 0) {
			*ret_event = (struct span_event){
				.t = reader->t,
				.span = reader->open.items[--reader->open.n],
			};
			return 0;
		}
		if (code == CODE_PART) {
			r = get_entry(reader->log, &reader->outer, &reader->n_outer, &unused);
			reader->t_outer = 0;
			if (r != 0)
				return r;
		}
	}
	return next_outer(reader, ret_event);
}
