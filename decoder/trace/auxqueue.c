/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/trace/auxqueue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/trace/overlap.h"
#include "util/spill.h"
#include "util/vec.h"

/* perf pads a piece to 8 bytes, and its offset then steps by less than its size. */
#define PADDING_MAX 7u

/* Queues without PT, of CPUs that lost records. */
#define EMPTY_QUEUES_MAX 1024

/* What of a piece goes into the queue. */
struct part {
	struct trace_span span;
	bool hole;                      /* before it */
	const struct trace_span *piece; /* of a snapshot: the whole piece */
};

/* A span that was put together, and where it is in the file. */
struct joint {
	struct trace_span *span;
	uint64_t at;
};

struct maker {
	struct trace *trace;
	struct losses losses;
	VEC(struct part) parts; /* of the queue that is being made */
	struct spill spill;
	VEC(struct joint) joints;
};

/* By buffer; the pieces of one buffer in the order in which they came. */
static int compare_pieces(const void *pa, const void *pb)
{
	const struct auxpiece *a = pa, *b = pb;
	const uint32_t cpu_a = (uint32_t)a->cpu, cpu_b = (uint32_t)b->cpu;
	const uint32_t tid_a = (uint32_t)a->tid, tid_b = (uint32_t)b->tid;

	if (cpu_a != cpu_b)
		return cpu_a < cpu_b ? -1 : 1;
	if (tid_a != tid_b)
		return tid_a < tid_b ? -1 : 1;
	if (a->idx != b->idx)
		return a->idx < b->idx ? -1 : 1;
	return a->order < b->order ? -1 : a->order > b->order;
}

static bool same_buffer(const struct auxpiece *a, const struct auxpiece *b)
{
	return a->cpu == b->cpu && a->tid == b->tid && a->idx == b->idx;
}

/*
 * How many bytes at the end of @before are only padding, if @next goes on behind it without a hole;
 * -1 if bytes are missing between them.
 *
 * An offset that steps back is none (some writers leave them all 0): such pieces are one stream by
 * their order alone, as perf reads them.
 */
static int padding_between(const struct trace_span *before, const struct trace_span *next)
{
	const uint64_t end = before->offset + before->size;
	const uint64_t surplus = end - next->offset;

	if (next->offset > end)
		return -1;
	if (surplus > PADDING_MAX || surplus > before->size)
		return 0;
	for (uint64_t i = 0; i < surplus; i++)
		if (before->bytes[before->size - 1 - i])
			return 0;
	return (int)surplus;
}

/* Do the pieces' offsets say where in the stream they are? */
static bool has_offsets(const struct auxpiece *pieces, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (pieces[i].span.offset + PADDING_MAX <
		    pieces[i - 1].span.offset + pieces[i - 1].span.size)
			return false;
	return true;
}

/* Losses. */

static int compare_losses(const void *pa, const void *pb)
{
	const struct trace_loss *a = pa, *b = pb;

	return a->offset < b->offset ? -1 : a->offset > b->offset;
}

/* Give @queue its losses; @exact: those that tell where in the stream they are can be put there. */
static int take_losses(struct maker *m, uint32_t key, bool exact, struct trace_queue *queue)
{
	const struct losses *all = &m->losses;
	const size_t first = losses_find(all, key);
	size_t end = first, n_at = 0;

	while (end < all->list.n && all->list.items[end].key == key)
		end++;
	if (first == end)
		return 0;
	queue->losses = calloc(end - first, sizeof(*queue->losses));
	if (!queue->losses)
		return -ENOMEM;

	for (size_t pass = 0; pass < 2; pass++) {
		for (size_t i = first; i < end; i++) {
			const struct loss *l = &all->list.items[i];
			struct trace_loss loss = l->loss;
			const bool at = exact && l->in_aux && !l->overwrite;

			if (at != (pass == 0))
				continue;
			if (l->overwrite && m->trace->facts.snapshot_mode) {
				queue->overwritten = true;
				continue;
			}
			loss.offset = loss.reason == PTD_GAP_TRUNCATED ? l->aux_end : l->aux_start;
			queue->losses[queue->n_losses++] = loss;
		}
		if (pass == 0)
			n_at = queue->n_losses;
	}
	queue->n_losses_at = n_at;
	if (n_at)
		qsort(queue->losses, n_at, sizeof(*queue->losses), compare_losses);
	return 0;
}

/* Parts. */

/* Add a piece of a stream, cut where the recorder stood still. */
static int add_cut(struct maker *m, const struct trace_queue *queue, struct trace_span span,
		   bool hole)
{
	const struct {
		const struct trace_loss *items;
		size_t n;
	} losses = { queue->losses, queue->n_losses_at };
	int r;

	for (size_t i = vec_bisect(&losses, loss, loss->offset < span.offset); i < losses.n; i++) {
		const struct trace_loss *l = &losses.items[i];
		struct trace_span head = span;

		if (l->offset - span.offset >= span.size)
			break;
		if (l->reason != PTD_GAP_TRUNCATED)
			continue;
		head.size = (size_t)(l->offset - span.offset);
		if (head.size > 0) {
			r = vec_push(&m->parts, { .span = head, .hole = hole });
			if (r < 0)
				return r;
		}
		hole = true;
		span.bytes += head.size;
		span.file_offset += head.size;
		span.offset += head.size;
		span.size -= head.size;
	}
	return vec_push(&m->parts, { .span = span, .hole = hole });
}

static int parts_of_stream(struct maker *m, const struct trace_queue *queue,
			   const struct auxpiece *pieces, size_t n)
{
	bool hole = false;

	for (size_t i = 0; i < n; i++) {
		struct trace_span span = pieces[i].span;
		const int padding = i + 1 < n ? padding_between(&span, &pieces[i + 1].span) : 0;
		int r;

		span.size -= padding > 0 ? (size_t)padding : 0;
		r = add_cut(m, queue, span, hole);
		if (r < 0)
			return r;
		hole = padding < 0;
	}
	return 0;
}

/* Leave out the last @n bytes of what there is so far. */
static void cut_padding(struct maker *m, size_t n)
{
	while (n > 0) {
		struct part *last = &m->parts.items[m->parts.n - 1];
		const size_t here = n < last->span.size ? n : last->span.size;

		last->span.size -= here;
		n -= here;
		if (last->span.size > 0 || last->hole || m->parts.n == 1)
			return;
		m->parts.n--;
	}
}

/* Add what the piece has that those before it have not. */
static int add_snapshot(struct maker *m, const struct trace_span *piece)
{
	struct part part = { .span = *piece, .piece = piece, .hole = m->parts.n > 0 };
	size_t before, repeated, padding;

	while (m->parts.n > 0) {
		const struct part *last = &m->parts.items[m->parts.n - 1];

		if (!overlap_find(last->piece->bytes, last->piece->size, piece->bytes, piece->size,
				  m->trace->facts.has_tsc, &before, &repeated, &padding))
			break;
		if (before > 0 && last->hole == (m->parts.n > 1) &&
		    last->span.bytes == last->piece->bytes) {
			/* It has all of the last one, and more on both sides: perhaps of the one
			 * before, too. */
			m->parts.n--;
			part.hole = m->parts.n > 0;
			continue;
		}
		cut_padding(m, padding);
		part.hole = false;
		part.span.bytes += before + repeated;
		part.span.offset += before + repeated;
		part.span.file_offset += before + repeated;
		part.span.size -= before + repeated;
		break;
	}
	return part.span.size > 0 ? vec_push(&m->parts, part) : 0;
}

static int parts_of_snapshots(struct maker *m, const struct auxpiece *pieces, size_t n)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++) {
		r = add_snapshot(m, &pieces[i].span);
		if (i > 0)
			trace_evict(m->trace, pieces[i - 1].span.bytes, pieces[i - 1].span.size);
	}
	return r;
}

/* Spans. */

/* Put the bytes of @n parts together. */
static int join_parts(struct maker *m, const struct part *parts, size_t n, struct trace_span *span)
{
	int r;

	*span = parts[0].span;
	if (n == 1)
		return 0;

	r = vec_push(&m->joints, { .span = span, .at = m->spill.size });
	span->size = 0;
	span->reference = parts[n - 1].span.reference;
	for (size_t i = 0; i < n && r == 0; i++) {
		r = spill_write(&m->spill, parts[i].span.bytes, parts[i].span.size);
		span->size += parts[i].span.size;
		trace_evict(m->trace, parts[i].span.bytes, parts[i].span.size);
	}
	return r;
}

static int make_spans(struct maker *m, struct trace_queue *queue)
{
	size_t n_spans = 0;
	int r;

	for (size_t i = 0; i < m->parts.n; i++)
		n_spans += i == 0 || m->parts.items[i].hole;
	queue->spans = calloc(n_spans ?: 1, sizeof(*queue->spans));
	if (!queue->spans)
		return -ENOMEM;

	for (size_t i = 0, next; i < m->parts.n; i = next) {
		for (next = i + 1; next < m->parts.n && !m->parts.items[next].hole;)
			next++;
		r = join_parts(m, m->parts.items + i, next - i, &queue->spans[queue->n_spans]);
		if (r < 0)
			return r;
		queue->n_spans++;
	}
	return 0;
}

/* Queues. */

static int make_queue(struct maker *m, const struct auxpiece *pieces, size_t n,
		      struct trace_queue *queue)
{
	const bool apart = m->trace->facts.snapshot_mode;
	int r;

	*queue = (struct trace_queue){
		.idx = pieces->idx,
		.cpu = (uint32_t)pieces->cpu,
		.tid = (uint32_t)pieces->tid,
	};
	r = take_losses(m, queue->cpu == TRACE_NONE ? queue->tid : queue->cpu,
			!apart && has_offsets(pieces, n), queue);
	if (r < 0)
		return r;
	m->parts.n = 0;
	r = apart ? parts_of_snapshots(m, pieces, n) : parts_of_stream(m, queue, pieces, n);
	return r < 0 ? r : make_spans(m, queue);
}

/* Is one of the first @n queues, which are by CPU, that of @cpu? */
static bool has_queue(const struct trace *trace, size_t n, uint32_t cpu)
{
	const struct {
		const struct trace_queue *items;
		size_t n;
	} queues = { trace->queues, n };
	const size_t i = vec_bisect(&queues, queue, queue->cpu < cpu);

	return i < n && queues.items[i].cpu == cpu;
}

/* Of CPUs, or threads, without PT. */
static int make_empty_queues(struct maker *m)
{
	struct trace *trace = m->trace;
	const size_t n_with_pt = trace->n_queues;
	size_t n = 0;
	int r;

	for (size_t i = 0; i < m->losses.list.n && n < EMPTY_QUEUES_MAX; i++) {
		const struct loss *l = &m->losses.list.items[i];
		struct trace_queue queue = { .idx = l->key, .cpu = l->cpu, .tid = TRACE_NONE };

		if ((i > 0 && l[-1].key == l->key) || l->cpu == TRACE_NONE ||
		    has_queue(trace, n_with_pt, l->cpu))
			continue;
		r = take_losses(m, l->key, false, &queue);
		trace->queues[trace->n_queues++] = queue;
		n++;
		if (r < 0)
			return r;
	}
	return 0;
}

static int compare_queues(const void *pa, const void *pb)
{
	const struct trace_queue *a = pa, *b = pb;

	if (a->cpu != b->cpu)
		return a->cpu < b->cpu ? -1 : 1;
	if (a->tid != b->tid)
		return a->tid < b->tid ? -1 : 1;
	return a->idx < b->idx ? -1 : a->idx > b->idx;
}

static int make_queues(struct maker *m, struct auxpiece *pieces, size_t n_pieces)
{
	size_t n_queues = 0;
	int r;

	for (size_t i = 0; i < n_pieces; i++)
		n_queues += i == 0 || !same_buffer(&pieces[i - 1], &pieces[i]);
	m->trace->queues = calloc(n_queues + EMPTY_QUEUES_MAX, sizeof(*m->trace->queues));
	if (!m->trace->queues)
		return -ENOMEM;

	for (size_t i = 0, next; i < n_pieces; i = next) {
		for (next = i + 1; next < n_pieces && same_buffer(&pieces[i], &pieces[next]);)
			next++;
		r = make_queue(m, pieces + i, next - i, &m->trace->queues[m->trace->n_queues++]);
		if (r < 0)
			return r;
	}
	return make_empty_queues(m);
}

/* What was put together is read from the file that it was written to. */
static int finish_joints(struct maker *m)
{
	struct mapfile map;
	int r;

	r = vec_reserve(&m->trace->files, 1);
	if (r == 0)
		r = spill_finish(&m->spill, &map);
	if (r < 0)
		return r;
	for (size_t i = 0; i < m->joints.n; i++)
		m->joints.items[i].span->bytes = map.bytes + m->joints.items[i].at;
	m->trace->files.items[m->trace->files.n++] = map;
	qsort(m->trace->queues, m->trace->n_queues, sizeof(*m->trace->queues), compare_queues);
	return 0;
}

int auxqueues_make(struct auxpiece *pieces, size_t n_pieces, bool per_cpu, struct trace *trace)
{
	struct maker m = { .trace = trace, .spill.spills = trace->spills };
	bool per_thread = !per_cpu;
	int r;

	/* perf names a task in per-cpu pieces, too, and the cpu it knows of in per-thread ones. */
	for (size_t i = 0; i < n_pieces; i++) {
		if (pieces[i].cpu >= 0 && (per_cpu || pieces[i].tid < 0))
			pieces[i].tid = -1;
		else
			pieces[i].cpu = -1;
		per_thread = i == 0 ? pieces[i].cpu < 0 : per_thread && pieces[i].cpu < 0;
	}
	if (n_pieces)
		qsort(pieces, n_pieces, sizeof(*pieces), compare_pieces);

	r = losses_init(&m.losses, trace, per_thread);
	if (r == 0)
		r = make_queues(&m, pieces, n_pieces);
	if (r == 0)
		r = finish_joints(&m);
	losses_deinit(&m.losses);
	vec_deinit(&m.parts);
	vec_deinit(&m.joints);
	spill_deinit(&m.spill);
	return r;
}
