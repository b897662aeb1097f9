/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/trace/loss.h"

#include <linux/perf_event.h>
#include <stdlib.h>

#include "record/codec.h"

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

	if (a->key != b->key)
		return a->key < b->key ? -1 : 1;
	if (a->loss.time != b->loss.time)
		return a->loss.time < b->loss.time ? -1 : 1;
	if (a->aux_start != b->aux_start)
		return a->aux_start < b->aux_start ? -1 : 1;
	return a->loss.reason < b->loss.reason ? -1 : a->loss.reason > b->loss.reason;
}

int losses_init(struct losses *losses, const struct trace *trace, bool per_thread)
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
		losses_deinit(losses);
		return r;
	}
	if (losses->list.n)
		qsort(losses->list.items, losses->list.n, sizeof(*losses->list.items),
		      compare_by_key);
	return 0;
}

void losses_deinit(struct losses *losses)
{
	vec_deinit(&losses->list);
}

size_t losses_find(const struct losses *losses, uint32_t key)
{
	return vec_bisect(&losses->list, loss, loss->key < key);
}
