/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/sideband/stream.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "daemon/sideband/sideband.h"
#include "util/perf/record.h"

/* Where a chunk belongs. */
struct place {
	uint64_t epoch;
	uint32_t index; /* in the head or body of the epoch */
	uint16_t stream;
	uint16_t is_head;
};

#define CHUNK_ROOM (STREAM_CHUNK_SIZE - 40) /* what remains of a slot */

/* In a slot of the kept state. */
struct sideband_chunk {
	struct kept *kept; /* borrowed; NULL: the slot is none of its own */
	struct place place;
	uint32_t n_refs; /* counted in the sideband's thread only */
	uint32_t used;
	uint32_t n_records;
	uint32_t reserved;
	uint8_t bytes[CHUNK_ROOM];
};

static_assert(sizeof(struct sideband_chunk) == KEPT_SLOT_SIZE, "a chunk fills a slot");
static_assert(CHUNK_ROOM >= RECORD_SIZE_MAX, "a record must fit a chunk");

/* --- chunks ----------------------------------------------------------------------------------- */

void chunk_unref(struct sideband_chunk *chunk)
{
	assert(chunk->n_refs > 0);
	if (--chunk->n_refs == 0)
		(void)kept_slot_free(chunk->kept, chunk);
}

/* Return: an empty chunk with one reference; NULL: there is no memory. */
static struct sideband_chunk *chunk_new(struct kept *kept, const struct place *place)
{
	struct sideband_chunk *chunk = kept_slot_new(kept);

	if (chunk) {
		chunk->kept = kept;
		chunk->place = *place;
		chunk->n_refs = 1;
	}
	return chunk;
}

struct sideband_chunk *chunk_of(size_t (*write)(const void *userdata, void *to, size_t room),
				const void *userdata)
{
	struct sideband_chunk *chunk = chunk_new(NULL, &(struct place){});

	if (chunk)
		chunk->used = (uint32_t)write(userdata, chunk->bytes, sizeof(chunk->bytes));
	return chunk;
}

void chunk_view(struct sideband_chunk *chunk, struct sideband_view *view)
{
	view->chunks[view->n_spans] = chunk;
	view->spans[view->n_spans++] = cursor_from(chunk->bytes, chunk->used);
}

static void chunks_deinit(struct chunks *chunks)
{
	vec_deinit_each(&chunks->list, chunk, chunk_unref(*chunk));
}

static uint64_t count_records(const struct chunks *chunks)
{
	uint64_t n = 0;

	for (size_t i = 0; i < chunks->list.n; i++)
		n += chunks->list.items[i]->n_records;
	return n;
}

/* --- epochs ----------------------------------------------------------------------------------- */

static void free_chunks(struct epoch *epoch)
{
	chunks_deinit(&epoch->head);
	chunks_deinit(&epoch->body);
}

static void epoch_deinit(struct epoch *epoch)
{
	free_chunks(epoch);
	map_deinit(&epoch->pids);
	*epoch = (struct epoch){};
}

uint64_t epoch_bytes(const struct epoch *epoch)
{
	return (epoch->head.list.n + epoch->body.list.n) * sizeof(struct sideband_chunk);
}

uint64_t stream_bytes(const struct stream *stream)
{
	return epoch_bytes(&stream->before) + epoch_bytes(&stream->now);
}

void stream_clear(struct stream *stream)
{
	epoch_deinit(&stream->before);
	epoch_deinit(&stream->now);
	stream->has_before = false;
	stream->n_epochs += 2;
}

uint64_t stream_begin(struct stream *stream, uint64_t since_ns, bool forget)
{
	uint64_t n_freed = count_records(&stream->before.body);

	epoch_deinit(&stream->before);
	stream->before = stream->now;
	stream->has_before = !forget;
	if (forget) {
		n_freed += count_records(&stream->before.body);
		free_chunks(&stream->before);
	}
	stream->now = (struct epoch){ .since_ns = since_ns };
	stream->n_epochs++;
	return n_freed;
}

void stream_forget_head(struct stream *stream)
{
	chunks_deinit(&stream->now.head);
}

/* --- processes -------------------------------------------------------------------------------- */

bool stream_has(const struct stream *stream, uint32_t pid)
{
	const uint64_t *now = map_get(&stream->now.pids, pid);
	const uint64_t *before = now ? NULL : map_get(&stream->before.pids, pid);

	return (now && *now) || (before && *before);
}

int stream_learn(struct stream *stream, uint32_t pid)
{
	return map_put(&stream->now.pids, pid, 1);
}

int stream_learn_before(struct stream *stream)
{
	const struct map *before = &stream->before.pids;
	int r = 0;

	for (size_t i = 0; r == 0 && i < before->n_slots; i++) {
		const struct map_slot *slot = &before->slots[i];

		if (slot->used && slot->value && !map_get(&stream->now.pids, slot->key))
			r = map_put(&stream->now.pids, slot->key, 1);
	}
	return r;
}

void stream_unlearn(struct stream *stream, uint32_t pid)
{
	uint64_t *now = map_get(&stream->now.pids, pid);
	uint64_t *before = map_get(&stream->before.pids, pid);

	if (now)
		*now = 0;
	if (before)
		*before = 0;
}

/* --- records ---------------------------------------------------------------------------------- */

bool stream_fits(const struct stream *stream, bool is_head, size_t size)
{
	const struct chunks *to = is_head ? &stream->now.head : &stream->now.body;

	return to->list.n > 0 && CHUNK_ROOM - to->list.items[to->list.n - 1]->used >= size;
}

int stream_append(struct stream *stream, bool is_head, struct kept *kept, const void *bytes,
		  size_t size)
{
	struct chunks *to = is_head ? &stream->now.head : &stream->now.body;
	struct sideband_chunk *chunk;
	int r;

	if (!stream_fits(stream, is_head, size)) {
		chunk = chunk_new(kept, &(struct place){ .epoch = stream->n_epochs,
							 .stream = (uint16_t)stream->number,
							 .is_head = is_head,
							 .index = (uint32_t)to->list.n });
		if (!chunk)
			return -ENOMEM;
		r = vec_push(&to->list, chunk);
		if (r < 0) {
			chunk_unref(chunk);
			return r;
		}
	}
	chunk = to->list.items[to->list.n - 1];
	memcpy(chunk->bytes + chunk->used, bytes, size);
	chunk->used += (uint32_t)size;
	chunk->n_records++;
	return 0;
}

const struct epoch *stream_first(const struct stream *stream)
{
	/* What the later epoch began with is said by the earlier one's records. */
	return stream->has_before ? &stream->before : &stream->now;
}

size_t stream_n_chunks(const struct stream *stream)
{
	return stream_first(stream)->head.list.n + stream->before.body.list.n +
	       stream->now.body.list.n;
}

static void view_chunks(const struct chunks *chunks, struct sideband_view *view)
{
	for (size_t i = 0; i < chunks->list.n; i++) {
		chunks->list.items[i]->n_refs++;
		chunk_view(chunks->list.items[i], view);
	}
}

void stream_view(const struct stream *stream, struct sideband_view *view)
{
	view_chunks(&stream_first(stream)->head, view);
	view_chunks(&stream->before.body, view);
	view_chunks(&stream->now.body, view);
}

/* --- what is kept ----------------------------------------------------------------------------- */

static struct kept_row row_of(const struct chunks *chunks)
{
	const size_t n = chunks->list.n;

	return (struct kept_row){ .n_slots = (uint32_t)n,
				  .last_used = n > 0 ? chunks->list.items[n - 1]->used : 0 };
}

static struct kept_epoch epoch_of(const struct epoch *epoch)
{
	return (struct kept_epoch){ .since_ns = epoch->since_ns,
				    .head = row_of(&epoch->head),
				    .body = row_of(&epoch->body) };
}

struct kept_stream stream_keep(const struct stream *stream)
{
	return (struct kept_stream){
		.is_used = stream->is_used,
		.has_before = stream->has_before,
		.uid = stream->uid,
		.n_epochs = stream->n_epochs,
		.time = stream->time,
		.n_dropped = stream->n_dropped,
		.before = epoch_of(&stream->before),
		.now = epoch_of(&stream->now),
	};
}

/* Make room for the chunks of a row, which are not there yet. */
static int expect_row(const struct kept_row *row, struct chunks *ret_chunks)
{
	int r;

	/* More slots than any file has: what was kept makes no sense. */
	if (row->n_slots > UINT32_MAX / KEPT_SLOT_SIZE)
		return -EBADMSG;
	r = vec_reserve(&ret_chunks->list, row->n_slots);
	for (size_t i = 0; r == 0 && i < row->n_slots; i++)
		ret_chunks->list.items[i] = NULL;
	return r;
}

int stream_expect(struct stream *stream, const struct kept_stream *kept)
{
	int r;

	*stream = (struct stream){
		.number = stream->number,
		.is_used = kept->is_used,
		.has_before = kept->has_before,
		.uid = kept->uid,
		.n_epochs = kept->n_epochs,
		.time = kept->time,
		.n_dropped = kept->n_dropped,
		.before = { .since_ns = kept->before.since_ns },
		.now = { .since_ns = kept->now.since_ns },
	};
	r = expect_row(&kept->before.head, &stream->before.head);
	if (r == 0)
		r = expect_row(&kept->before.body, &stream->before.body);
	if (r == 0)
		r = expect_row(&kept->now.head, &stream->now.head);
	return r ? r : expect_row(&kept->now.body, &stream->now.body);
}

/* Put the chunk where it belongs. Return: whether it belongs anywhere. */
static bool put_chunk(struct stream *streams, const struct kept_stream *keeps,
		      struct sideband_chunk *chunk)
{
	const struct place *place = &chunk->place;
	const size_t i = place->stream < KEPT_STREAMS_MAX ? place->stream : 0;
	const bool is_now = place->epoch == keeps[i].n_epochs;
	const struct kept_epoch *of = is_now ? &keeps[i].now : &keeps[i].before;
	const struct kept_row *row = place->is_head ? &of->head : &of->body;
	struct epoch *epoch = is_now ? &streams[i].now : &streams[i].before;
	struct chunks *chunks = place->is_head ? &epoch->head : &epoch->body;

	if ((!is_now && (!keeps[i].has_before || place->epoch + 1 != keeps[i].n_epochs)) ||
	    place->stream >= KEPT_STREAMS_MAX || place->index >= row->n_slots ||
	    chunks->list.items[place->index])
		return false;
	if (place->index + 1 == row->n_slots)
		chunk->used = row->last_used;
	chunks->list.items[place->index] = chunk;
	return true;
}

int streams_find(struct stream *streams, struct kept *kept, const struct kept_stream *keeps)
{
	size_t at = 0;
	void *slot;
	int r;

	while ((r = kept_slot_next(kept, &at, &slot)) == 0) {
		struct sideband_chunk *chunk = slot;

		chunk->kept = kept;
		chunk->n_refs = 1;
		if (!put_chunk(streams, keeps, chunk))
			chunk_unref(chunk);
	}
	return r == -ENOENT ? 0 : r;
}

/* Have the row hold the chunks that were found. Return: 0, or -EBADMSG if one is missing or does
 * not hold whole records. */
static int settle_row(struct chunks *chunks, const struct kept_row *row)
{
	int r = 0;

	for (size_t i = 0; i < row->n_slots; i++) {
		struct sideband_chunk *chunk = chunks->list.items[i];
		struct record record;
		struct cursor c;

		if (!chunk) {
			r = -EBADMSG;
			continue;
		}
		chunks->list.items[chunks->list.n++] = chunk;
		if (chunk->used > CHUNK_ROOM) {
			r = -EBADMSG;
			continue;
		}
		c = cursor_from(chunk->bytes, chunk->used);
		for (chunk->n_records = 0; record_next(&c, &record) == 0;)
			chunk->n_records++;
		if (cursor_left(&c) > 0)
			r = -EBADMSG;
	}
	return r;
}

int stream_settle(struct stream *stream, const struct kept_stream *kept)
{
	const int r[] = { settle_row(&stream->before.head, &kept->before.head),
			  settle_row(&stream->before.body, &kept->before.body),
			  settle_row(&stream->now.head, &kept->now.head),
			  settle_row(&stream->now.body, &kept->now.body) };

	return r[0] ? r[0] : r[1] ? r[1] : r[2] ? r[2] : r[3];
}

/* --- a walk over all of them ------------------------------------------------------------------ */

/* Where it has come to in one stream. */
struct walker {
	enum stream_row row;
	size_t n_begun; /* chunks of the row */
	struct cursor rest;
	struct record record;
	bool has_record;
};

static const struct chunks *chunks_of(const struct stream *stream, enum stream_row row)
{
	switch (row) {
	case STREAM_BEFORE_HEAD:
		return &stream->before.head;
	case STREAM_BEFORE_BODY:
		return &stream->before.body;
	case STREAM_NOW_HEAD:
		return &stream->now.head;
	case STREAM_NOW_BODY:
		break;
	}
	return &stream->now.body;
}

/* Go on to the next record, if there is one. */
static void step(struct walker *w, const struct stream *stream, enum stream_row last)
{
	w->has_record = false;
	while (record_next(&w->rest, &w->record) != 0) {
		const struct chunks *chunks = chunks_of(stream, w->row);
		const struct sideband_chunk *chunk;

		if (w->n_begun == chunks->list.n) {
			if (w->row == last)
				return;
			w->row++;
			w->n_begun = 0;
			continue;
		}
		chunk = chunks->list.items[w->n_begun++];
		w->rest = cursor_from(chunk->bytes, chunk->used);
	}
	w->has_record = true;
}

int streams_walk(struct stream *streams, enum stream_row first, enum stream_row last,
		 int (*note)(void *userdata, struct stream *stream, enum stream_row row,
			     const struct record *record),
		 void *userdata)
{
	struct walker walkers[KEPT_STREAMS_MAX] = {};
	int r = 0;

	for (size_t i = 0; i < KEPT_STREAMS_MAX; i++) {
		walkers[i].row = first;
		step(&walkers[i], &streams[i], last);
	}
	for (;;) {
		struct walker *next = NULL;
		int one;

		for (size_t i = 0; i < KEPT_STREAMS_MAX; i++)
			if (walkers[i].has_record &&
			    (!next || walkers[i].record.trailer.time < next->record.trailer.time))
				next = &walkers[i];
		if (!next)
			return r;
		one = note(userdata, &streams[next - walkers], next->row, &next->record);
		r = r ? r : one;
		step(next, &streams[next - walkers], last);
	}
}
