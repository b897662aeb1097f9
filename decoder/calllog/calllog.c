/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/calllog/calllog.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "decoder/symbol/resolver.h"
#include "decoder/util/batchsource.h"
#include "decoder/util/heap.h"
#include "util/map.h"
#include "util/message.h"

int calllog_complain(struct calllog *log, const char *path, uint64_t offset, const char *fault)
{
	const bool is_last = log->n_complaints == CALLLOG_COMPLAINTS_MAX - 1;
	_cleanup_(freep) char *text = message_text("%s: byte %" PRIu64 ": %s%s", path, offset,
						   fault, is_last ? "; and more is wrong" : "");
	const char *copy;

	if (log->n_complaints == CALLLOG_COMPLAINTS_MAX)
		return 0;
	copy = text ? arena_strdup(&log->texts, text) : NULL;
	if (!copy)
		return -ENOMEM;
	log->complaints[log->n_complaints++] = copy;
	return 0;
}

int calllog_check(const struct calllog *log, const char *path, const char *what,
		  char **reterr_message)
{
	if (log->n_calls > 0)
		return 0;
	if (log->n_complaints > 0)
		return message_set(reterr_message, -EBADMSG, "%s", log->complaints[0]);
	return message_set(reterr_message, -EBADMSG, "%s: has no %s", path, what);
}

struct calllog *calllog_free(struct calllog *log)
{
	if (!log)
		return NULL;
	vec_deinit(&log->lanes);
	arena_deinit(&log->texts);
	log->ops->free(log);
	return NULL;
}

/* --- call source ------------------------------------------------------------------------------ */

struct callsource {
	struct batchsource source; /* the first field */
	struct calllog *log;
	VEC(struct calllane *) heap;    /* those that have not ended, the one that is next on top */
	const struct calllane *current; /* of the slice; NULL: none */
	struct ptd_slice slice;
	struct map spaces; /* pid → id */
	struct callpiece piece;
};

static struct callsource *of(struct batchsource *source)
{
	return (struct callsource *)source;
}

/* --- the order of the pieces ------------------------------------------------------------------ */

static bool comes_before(const struct calllane *a, const struct calllane *b)
{
	if (a->t != b->t)
		return a->t < b->t;
	if (a->cpu != b->cpu)
		return a->cpu < b->cpu;
	return a->tid < b->tid;
}

static int start_stream(struct batchsource *batches, char **reterr_message)
{
	struct callsource *source = of(batches);
	int r = 0;

	batchsource_reset(batches);
	source->heap.n = 0;
	source->current = NULL;
	for (size_t i = 0; i < source->log->lanes.n && r == 0; i++) {
		struct calllane *lane = source->log->lanes.items[i];

		r = source->log->ops->begin(source->log, lane, reterr_message);
		if (r == 0 && !lane->ended)
			r = vec_push(&source->heap, lane);
	}
	heap_make(&source->heap, comes_before);
	return r;
}

/* --- the stream ------------------------------------------------------------------------------- */

static int find_space(struct callsource *source, uint32_t pid, uint32_t *ret_space)
{
	uint64_t space;
	const int r = map_number(&source->spaces, pid, source->spaces.n_used, &space);

	*ret_space = (uint32_t)space;
	return r < 0 ? r : 0;
}

static int begin_slice(struct callsource *source, const struct calllane *lane)
{
	source->current = lane;
	source->slice = (struct ptd_slice){ .cpu = lane->cpu,
					    .pid = lane->pid,
					    .tid = lane->tid,
					    .t0 = lane->t,
					    .comm = lane->comm };
	return find_space(source, lane->pid, &source->slice.space);
}

static int count_piece(struct callsource *source)
{
	const struct callpiece *piece = &source->piece;
	struct batchsource_count count = { .cpu = source->slice.cpu,
					   .t_first = source->slice.t0,
					   .t_last = source->slice.t0 };

	if (piece->calls.n > 0)
		count.t_last = piece->calls.items[piece->calls.n - 1].t;
	for (size_t i = 0; i < piece->marks.n; i++)
		if (piece->marks.items[i].kind == PTD_MARK_GAP)
			count.n_gaps[piece->marks.items[i].reason]++;
	return batchsource_count(&source->source, &count);
}

/* Read a piece of the lane on top. Return: 0; or negative errno. */
static int read_piece(struct callsource *source, bool *ret_new, char **reterr_message)
{
	struct calllane *lane = source->heap.items[0];
	int r = 0;

	if (source->current != lane || source->slice.cpu != lane->cpu) {
		r = begin_slice(source, lane);
		*ret_new = true;
	}
	source->piece.calls.n = source->piece.marks.n = 0;
	if (r == 0)
		r = source->log->ops->read(source->log, lane, &source->piece, reterr_message);
	if (lane->ended)
		heap_drop(&source->heap, comes_before);
	else
		heap_sink(&source->heap, 0, comes_before);
	return r;
}

static int next_logged(struct batchsource *batches, struct ptd_logged *ret_logged,
		       struct ptd_slice **ret_slice, bool *ret_new, char **reterr_message)
{
	struct callsource *source = of(batches);
	const struct callpiece *piece = &source->piece;
	int r = 0;

	*ret_new = false;
	do {
		if (source->heap.n == 0)
			return 1;
		r = read_piece(source, ret_new, reterr_message);
	} while (r == 0 && piece->calls.n == 0 && piece->marks.n == 0);
	if (r == 0)
		r = count_piece(source);
	if (r < 0)
		return r;
	*ret_logged = (struct ptd_logged){
		.batch = { .slice = &source->slice,
			   .marks = piece->marks.items,
			   .n_marks = piece->marks.n },
		.calls = piece->calls.items,
		.n_calls = piece->calls.n,
	};
	ret_logged->batch.symbols =
	    resolver_symbols(source->log->resolver, &ret_logged->batch.n_symbols);
	*ret_slice = &source->slice;
	return 0;
}

static void free_source(struct batchsource *batches)
{
	struct callsource *source = of(batches);

	calllog_free(source->log);
	vec_deinit(&source->heap);
	callpiece_deinit(&source->piece);
	map_deinit(&source->spaces);
	free(source);
}

static const struct batchsource_ops source_ops = {
	.start = start_stream,
	.next_logged = next_logged,
	.free = free_source,
};

int callsource_new(struct calllog *log, struct batchsource **ret_source)
{
	struct callsource *source = calloc(1, sizeof(*source));

	if (!source)
		return -ENOMEM;
	source->source.ops = &source_ops;
	source->source.clock = log->clock;
	source->source.complaints = log->complaints;
	source->source.n_complaints = log->n_complaints;
	source->log = log;
	*ret_source = &source->source;
	return 0;
}
