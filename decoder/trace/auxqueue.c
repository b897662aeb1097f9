/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/trace/auxqueue.h"

#include <assert.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/trace/overlap.h"
#include "util/perf/codec.h"
#include "util/vec.h"
#include "util/window.h"

/* --- loss ------------------------------------------------------------------------------------- */

/*
 * Data that the recorder itself states to be lost: by the flags of AUX records, and by LOST and
 * LOST_SAMPLES records. Each loss becomes a gap in the stream of the AUX buffer that it is about:
 * at the offset that the record states, or at the record's time if it states none.
 */

/* A loss, and the buffer that it is about. */
struct loss {
	uint32_t key; /* the cpu, or in per-thread mode the tid */
	uint32_t cpu; /* TRACE_NONE in per-thread mode; like tid */
	uint32_t tid;
	bool in_aux;    /* an AUX record states it, about the bytes from aux_start to aux_end */
	bool overwrite; /* it only states that the ring was overwritten */
	uint64_t aux_start, aux_end;
	struct trace_loss loss; /* with the record's time */
};

struct losses {
	VEC(struct loss) list; /* by key, then time */
};

static int add_loss(struct losses *losses, const struct loss *like, enum ptd_gap_reason reason)
{
	struct loss loss = *like;

	loss.loss.reason = reason;
	return vec_push(&losses->list, loss);
}

static int add_aux(struct losses *losses, const struct trace_record *record, struct loss *loss)
{
	static const struct {
		uint64_t flag;
		enum ptd_gap_reason reason;
	} rows[] = {
		{ PERF_AUX_FLAG_TRUNCATED, PTD_GAP_TRUNCATED },
		{ PERF_AUX_FLAG_PARTIAL, PTD_GAP_PARTIAL },
		{ PERF_AUX_FLAG_COLLISION, PTD_GAP_COLLISION },
		{ PERF_AUX_FLAG_OVERWRITE, PTD_GAP_OVERWRITTEN },
	};
	struct record_aux aux;
	int r = 0;

	if (record_read_aux(trace_record_body(record), &aux) < 0)
		return 0;
	loss->in_aux = true;
	loss->aux_start = aux.offset;
	loss->aux_end = aux.offset + aux.size;
	for (size_t i = 0; i < ARRAY_LEN(rows) && r == 0; i++) {
		if (!(aux.flags & rows[i].flag))
			continue;
		loss->overwrite = rows[i].flag == PERF_AUX_FLAG_OVERWRITE;
		r = add_loss(losses, loss, rows[i].reason);
	}
	return r;
}

static int compare_by_key(const void *pa, const void *pb)
{
	const struct loss *a = pa, *b = pb;

	return COMPARE(a->key, b->key)                  ?: COMPARE(a->loss.time, b->loss.time)
	       ?: COMPARE(a->aux_start, b->aux_start) ?: COMPARE(a->loss.reason, b->loss.reason);
}

/*
 * Collect the losses in the records of @trace.
 *
 * @per_thread: each AUX buffer was of a thread; else each was of a CPU
 *
 * Return: 0 or -ENOMEM.
 */
static int losses_init(struct losses *losses, const struct trace *trace, bool per_thread)
{
	int r = 0;

	*losses = (struct losses){};
	for (size_t i = 0; i < trace->n_records && r == 0; i++) {
		const struct trace_record *record = &trace->records[i];
		struct loss loss = {
			.key = per_thread ? record->tid : record->cpu,
			.cpu = per_thread ? TRACE_NONE : record->cpu,
			.tid = per_thread ? record->tid : TRACE_NONE,
			.loss.time = record->time,
		};

		if (i % TRACE_EVICT_RECORDS == 0)
			trace_evict(trace);
		if (record->type == PERF_RECORD_AUX)
			r = add_aux(losses, record, &loss);
		else if (record->type == PERF_RECORD_LOST)
			r = add_loss(losses, &loss, PTD_GAP_LOST_RECORDS);
		else if (record->type == PERF_RECORD_LOST_SAMPLES)
			r = add_loss(losses, &loss, PTD_GAP_LOST_SAMPLES);
	}
	if (r < 0) {
		vec_deinit(&losses->list);
		return r;
	}
	vec_sort(&losses->list, compare_by_key);
	return 0;
}

/* --- queues ----------------------------------------------------------------------------------- */

/* perf pads a piece to 8 bytes, and its offset then steps by less than its size. */
#define PADDING_MAX 7u

/* Queues without PT, of CPUs that lost records. */
#define EMPTY_QUEUES_MAX 1024

/* What of a piece goes into the queue. */
struct part {
	struct auxbytes bytes;
	bool hole;                    /* before it */
	const struct auxbytes *piece; /* of a snapshot: the whole piece */
};

struct maker {
	struct trace *trace;
	struct losses losses;
	VEC(struct part) parts;          /* of the queue that is being made */
	VEC(struct filepart) file_parts; /* of all spans so far, one after the other */
};

/* By buffer; the pieces of one buffer in the order in which they came. */
static int compare_pieces(const void *pa, const void *pb)
{
	const struct auxpiece *a = pa, *b = pb;
	const uint32_t cpu_a = (uint32_t)a->cpu, cpu_b = (uint32_t)b->cpu;
	const uint32_t tid_a = (uint32_t)a->tid, tid_b = (uint32_t)b->tid;

	return COMPARE(cpu_a, cpu_b) ?: COMPARE(tid_a, tid_b) ?: COMPARE(a->idx, b->idx)
		?: COMPARE(a->order, b->order);
}

static bool same_buffer(const struct auxpiece *a, const struct auxpiece *b)
{
	return a->cpu == b->cpu && a->tid == b->tid && a->idx == b->idx;
}

static struct filepart part_of(const struct auxbytes *bytes)
{
	return (struct filepart){ .offset = bytes->at, .fd = bytes->fd, .pieces = bytes->pieces };
}

/*
 * Find out whether bytes are missing between @before and @next; if not, how many bytes at the end
 * of @before are only padding.
 *
 * An offset that steps back is none (some writers leave them all 0): such pieces are one stream by
 * their order alone, as perf reads them.
 *
 * Return: 0, or negative errno.
 */
static int look_between(const struct auxbytes *before, const struct auxbytes *next, bool *ret_hole,
			uint64_t *ret_padding)
{
	const uint64_t end = before->offset + before->size;
	const uint64_t surplus = end - next->offset;
	const struct filepart part = part_of(before);
	uint8_t last[PADDING_MAX];
	int r;

	*ret_hole = next->offset > end;
	*ret_padding = 0;
	if (*ret_hole || surplus == 0 || surplus > PADDING_MAX || surplus > before->size)
		return 0;
	r = filepart_read(&part, before->size - surplus, last, (size_t)surplus);
	if (r < 0)
		return r;
	for (uint64_t i = 0; i < surplus; i++)
		if (last[i])
			return 0;
	*ret_padding = surplus;
	return 0;
}

/* Do the pieces' offsets say where in the stream they are? */
static bool has_offsets(const struct auxpiece *pieces, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (pieces[i].bytes.offset + PADDING_MAX <
		    pieces[i - 1].bytes.offset + pieces[i - 1].bytes.size)
			return false;
	return true;
}

/* Losses. */

static int compare_losses(const void *pa, const void *pb)
{
	const struct trace_loss *a = pa, *b = pb;

	return COMPARE(a->offset, b->offset);
}

/* Give @queue its losses; @exact: those that tell where in the stream they are can be put there. */
static int take_losses(struct maker *m, uint32_t key, bool exact, struct trace_queue *queue)
{
	const struct losses *all = &m->losses;
	const size_t first = vec_bisect(&all->list, loss, loss->key < key);
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

/* Leave out the first @n of the bytes. */
static void skip_bytes(struct auxbytes *bytes, uint64_t n)
{
	bytes->at += n;
	bytes->offset += n;
	bytes->file_offset += n;
	bytes->size -= n;
}

/* Add a piece of a stream, cut where the recorder stood still. */
static int add_cut(struct maker *m, const struct trace_queue *queue, struct auxbytes bytes,
		   bool hole)
{
	const struct {
		const struct trace_loss *items;
		size_t n;
	} losses = { queue->losses, queue->n_losses_at };
	int r;

	for (size_t i = vec_bisect(&losses, loss, loss->offset < bytes.offset); i < losses.n; i++) {
		const struct trace_loss *l = &losses.items[i];
		struct auxbytes head = bytes;

		if (l->offset - bytes.offset >= bytes.size)
			break;
		if (l->reason != PTD_GAP_TRUNCATED)
			continue;
		head.size = l->offset - bytes.offset;
		if (head.size > 0) {
			r = vec_push(&m->parts, { .bytes = head, .hole = hole });
			if (r < 0)
				return r;
		}
		hole = true;
		skip_bytes(&bytes, head.size);
	}
	return vec_push(&m->parts, { .bytes = bytes, .hole = hole });
}

static int parts_of_stream(struct maker *m, const struct trace_queue *queue,
			   const struct auxpiece *pieces, size_t n)
{
	bool hole = false;
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++) {
		struct auxbytes bytes = pieces[i].bytes;
		uint64_t padding = 0;
		bool next_hole = false;

		if (i + 1 < n)
			r = look_between(&bytes, &pieces[i + 1].bytes, &next_hole, &padding);
		bytes.size -= padding;
		if (r == 0)
			r = add_cut(m, queue, bytes, hole);
		hole = next_hole;
	}
	return r;
}

/* Leave out the last @n bytes of what there is so far. */
static void cut_padding(struct maker *m, uint64_t n)
{
	while (n > 0) {
		struct part *last = &m->parts.items[m->parts.n - 1];
		const uint64_t here = n < last->bytes.size ? n : last->bytes.size;

		last->bytes.size -= here;
		n -= here;
		if (last->bytes.size > 0 || last->hole || m->parts.n == 1)
			return;
		m->parts.n--;
	}
}

/* What two pieces have in common: see overlap_find(). */
struct common {
	bool is_found;
	uint64_t before, repeated, padding;
};

/* Return: 0, or negative errno. */
static int find_common(const struct maker *m, const struct auxbytes *earlier,
		       const struct auxbytes *later, struct common *ret_common)
{
	const struct filepart parts[] = {
		part_of(earlier),
		part_of(later),
	};
	_cleanup_(window_deinit) struct window a, b;

	window_init(&a, &(struct fileparts){ .size = earlier->size, .parts = &parts[0], .n = 1 },
		    WINDOW_SIZE);
	window_init(&b, &(struct fileparts){ .size = later->size, .parts = &parts[1], .n = 1 },
		    WINDOW_SIZE);
	ret_common->is_found = overlap_find(&a, &b, m->trace->facts.has_tsc, &ret_common->before,
					    &ret_common->repeated, &ret_common->padding);
	return a.error ?: b.error;
}

/* Add what the piece has that those before it have not. */
static int add_snapshot(struct maker *m, const struct auxbytes *piece)
{
	struct part part = { .bytes = *piece, .piece = piece, .hole = m->parts.n > 0 };

	while (m->parts.n > 0) {
		const struct part *last = &m->parts.items[m->parts.n - 1];
		struct common common;
		const int r = find_common(m, last->piece, piece, &common);

		if (r < 0)
			return r;
		if (!common.is_found)
			break;
		if (common.before > 0 && last->hole == (m->parts.n > 1) &&
		    last->bytes.at == last->piece->at) {
			/* It has all of the last one, and more on both sides: perhaps of the one
			 * before, too. */
			m->parts.n--;
			part.hole = m->parts.n > 0;
			continue;
		}
		cut_padding(m, common.padding);
		part.hole = false;
		skip_bytes(&part.bytes, common.before + common.repeated);
		break;
	}
	return part.bytes.size > 0 ? vec_push(&m->parts, part) : 0;
}

static int parts_of_snapshots(struct maker *m, const struct auxpiece *pieces, size_t n)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++)
		r = add_snapshot(m, &pieces[i].bytes);
	return r;
}

/* Spans. */

/* Put the bytes of @n parts together. */
static int join_parts(struct maker *m, const struct part *parts, size_t n, struct trace_span *span)
{
	int r = 0;

	*span = (struct trace_span){
		.offset = parts[0].bytes.offset,
		.file_offset = parts[0].bytes.file_offset,
	};
	for (size_t i = 0; r == 0 && i < n; i++) {
		const struct auxbytes *bytes = &parts[i].bytes;
		struct filepart part = part_of(bytes);

		if (bytes->size == 0)
			continue;
		part.start = span->pt.size;
		r = vec_push(&m->file_parts, part);
		span->pt.size += bytes->size;
		span->pt.n++;
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

	return COMPARE(a->cpu, b->cpu) ?: COMPARE(a->tid, b->tid) ?: COMPARE(a->idx, b->idx);
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

/* All parts are known, and will not move any more. */
static void finish_spans(struct maker *m)
{
	struct trace *trace = m->trace;
	size_t n = 0;

	trace->parts = m->file_parts.items;
	for (size_t i = 0; i < trace->n_queues; i++) {
		for (size_t k = 0; k < trace->queues[i].n_spans; k++) {
			struct fileparts *pt = &trace->queues[i].spans[k].pt;

			pt->parts = trace->parts + n;
			n += pt->n;
		}
	}
	assert(n == m->file_parts.n);
	m->file_parts.items = NULL;
	m->file_parts.n = 0;
	if (trace->n_queues > 0)
		qsort(trace->queues, trace->n_queues, sizeof(*trace->queues), compare_queues);
}

int auxqueues_make(struct auxpiece *pieces, size_t n_pieces, bool per_cpu, struct trace *trace)
{
	struct maker m = { .trace = trace };
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
		finish_spans(&m);
	vec_deinit(&m.losses.list);
	vec_deinit(&m.parts);
	vec_deinit(&m.file_parts);
	return r;
}
