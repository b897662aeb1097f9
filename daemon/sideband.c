/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/sideband.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "daemon/record.h"
#include "decoder/util/vec.h"

#define CHUNK_SIZE ((size_t)256 << 10)

static_assert(CHUNK_SIZE >= RECORD_SIZE_MAX, "a record must fit a chunk");

struct sideband_chunk {
	unsigned n_refs; /* counted in the sideband's thread only */
	size_t used;
	uint8_t bytes[CHUNK_SIZE];
};

struct epoch {
	VEC(struct sideband_chunk *) chunks;
};

struct sideband {
	uint64_t bytes_max;
	uint64_t lost;
	uint64_t lost_unmarked; /* those no LOST record tells of yet */
	struct epoch before;
	struct epoch now;
};

static void chunk_unref(struct sideband_chunk *chunk)
{
	assert(chunk->n_refs > 0);
	if (--chunk->n_refs == 0)
		free(chunk);
}

static void epoch_deinit(struct epoch *epoch)
{
	for (size_t i = 0; i < epoch->chunks.n; i++)
		chunk_unref(epoch->chunks.items[i]);
	vec_deinit(&epoch->chunks);
}

int sideband_new(uint64_t bytes_max, struct sideband **ret_sideband)
{
	struct sideband *s = malloc(sizeof(*s));

	if (!s)
		return -ENOMEM;
	*s = (struct sideband){
		.bytes_max = bytes_max < 2 * sizeof(struct sideband_chunk)
				 ? 2 * sizeof(struct sideband_chunk)
				 : bytes_max,
	};
	*ret_sideband = s;
	return 0;
}

struct sideband *sideband_free(struct sideband *sideband)
{
	if (!sideband)
		return NULL;

	epoch_deinit(&sideband->before);
	epoch_deinit(&sideband->now);
	free(sideband);
	return NULL;
}

static uint64_t bytes_in_use(const struct sideband *s)
{
	return (s->before.chunks.n + s->now.chunks.n) * sizeof(struct sideband_chunk);
}

/* Make a chunk with room for @size bytes the last one. */
static int make_room(struct sideband *s, size_t size)
{
	struct sideband_chunk *chunk;
	int r;

	if (s->now.chunks.n > 0) {
		chunk = s->now.chunks.items[s->now.chunks.n - 1];
		if (CHUNK_SIZE - chunk->used >= size)
			return 0;
	}
	if (bytes_in_use(s) + sizeof(*chunk) > s->bytes_max)
		epoch_deinit(&s->before);
	if (bytes_in_use(s) + sizeof(*chunk) > s->bytes_max)
		return -ENOSPC;

	chunk = malloc(sizeof(*chunk));
	if (!chunk)
		return -ENOMEM;
	chunk->n_refs = 1;
	chunk->used = 0;
	r = vec_push(&s->now.chunks, chunk);
	if (r < 0)
		free(chunk);
	return r;
}

static int append(struct sideband *s, const void *bytes, size_t size)
{
	struct sideband_chunk *chunk;
	int r;

	r = make_room(s, size);
	if (r < 0)
		return r;
	chunk = s->now.chunks.items[s->now.chunks.n - 1];
	memcpy(chunk->bytes + chunk->used, bytes, size);
	chunk->used += size;
	return 0;
}

/* Tell of the records that were refused, as soon as something fits again. */
static int mark_lost(struct sideband *s, uint64_t time)
{
	struct {
		struct perf_event_header header;
		uint64_t id, lost;
		struct perfabi_trailer trailer;
	} record = {
		.header = { .type = PERF_RECORD_LOST, .size = sizeof(record) },
		.id = RECORD_ID_SIDEBAND,
		.lost = s->lost_unmarked,
		.trailer = { .time = time, .id = RECORD_ID_SIDEBAND },
	};
	int r;

	if (s->lost_unmarked == 0)
		return 0;
	r = append(s, &record, sizeof(record));
	if (r == 0)
		s->lost_unmarked = 0;
	return r;
}

int sideband_add(struct sideband *sideband, const uint8_t *bytes, size_t size)
{
	struct cursor c = cursor_from(bytes, size);
	struct record record;
	int r = 0, first = 0;

	while (record_next(&c, &record) == 0) {
		r = mark_lost(sideband, record.trailer.time);
		if (r == 0)
			r = append(sideband, record.bytes, record.header.size);
		if (r < 0) {
			sideband->lost++;
			sideband->lost_unmarked++;
			first = first ? first : r;
		}
	}
	return first;
}

void sideband_idle(struct sideband *sideband)
{
	if (sideband->now.chunks.n * sizeof(struct sideband_chunk) < sideband->bytes_max / 2)
		return;

	epoch_deinit(&sideband->before);
	sideband->before = sideband->now;
	sideband->now = (struct epoch){};
}

static void view_epoch(const struct epoch *epoch, struct sideband_view *view)
{
	for (size_t i = 0; i < epoch->chunks.n; i++) {
		struct sideband_chunk *chunk = epoch->chunks.items[i];

		chunk->n_refs++;
		view->chunks[view->n_spans] = chunk;
		view->spans[view->n_spans++] = cursor_from(chunk->bytes, chunk->used);
	}
}

int sideband_view_init(const struct sideband *sideband, struct sideband_view *ret_view)
{
	const size_t n = sideband->before.chunks.n + sideband->now.chunks.n;
	struct sideband_view v = {
		.spans = calloc(n + 1, sizeof(*v.spans)),
		.chunks = calloc(n + 1, sizeof(struct sideband_chunk *)),
	};

	if (!v.spans || !v.chunks) {
		free(v.spans);
		free(v.chunks);
		return -ENOMEM;
	}
	view_epoch(&sideband->before, &v);
	view_epoch(&sideband->now, &v);
	*ret_view = v;
	return 0;
}

void sideband_view_deinit(struct sideband_view *view)
{
	for (size_t i = 0; i < view->n_spans; i++)
		chunk_unref(view->chunks[i]);
	free(view->chunks);
	free(view->spans);
	*view = (struct sideband_view){};
}

struct sideband_stats sideband_stats(const struct sideband *sideband)
{
	return (struct sideband_stats){
		.bytes = bytes_in_use(sideband),
		.bytes_max = sideband->bytes_max,
		.lost = sideband->lost,
	};
}
