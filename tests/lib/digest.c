/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "tests/lib/digest.h"

#include <error.h>
#include <string.h>

#include "decoder/pipeline.h"
#include "ptd/decode.h"
#include "util/map.h"

DEFINE_CLEANUP(struct ptd_decoder *, ptd_decoder_free);

static void put(struct digest *d, uint64_t word)
{
	d->hash = (d->hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
	d->hash ^= d->hash >> 29;
}

static void put_text(struct digest *d, const char *text)
{
	put(d, map_hash(text, strlen(text)));
}

static void put_slice(struct digest *d, const struct ptd_slice *slice)
{
	put(d, slice->id);
	put(d, slice->cpu);
	put(d, (uint64_t)slice->pid << 32 | slice->tid);
	put(d, slice->space);
	put(d, slice->t0);
	put_text(d, slice->comm);
}

static void put_mark(struct digest *d, const struct ptd_mark *mark)
{
	put(d, (uint64_t)mark->kind << 32 | mark->reason);
	put(d, mark->t);
	put(d, mark->ip);
	put(d, mark->offset);
	put(d, mark->n_bytes);
	put(d, mark->value);
	put(d, mark->extra);
	d->n_items++;
}

static void put_run(struct digest *d, const struct ptd_batch *batch, const struct ptd_run *run)
{
	const uint32_t symbol = run->block->insns[run->first].symbol;

	put(d, (uint64_t)run->block->id << 32 | run->block->object->id);
	put(d, run->base);
	put(d, run->t);
	put(d, (uint64_t)run->first << 32 | run->n << 1 | run->early);
	put(d, symbol);
	if (symbol >= batch->n_symbols)
		d->r = -EINVAL;
	d->n_items++;
}

static void put_batch(struct digest *d, const struct ptd_batch *batch)
{
	size_t m = 0;

	for (size_t i = 0; i <= batch->n_runs; i++) {
		while (m < batch->n_marks && batch->marks[m].run == i)
			put_mark(d, &batch->marks[m++]);
		if (i < batch->n_runs)
			put_run(d, batch, &batch->runs[i]);
	}
}

static void put_stats(struct digest *d, const struct ptd_stats *stats)
{
	for (size_t i = 0; i < stats->n_cpus; i++) {
		const struct ptd_cpu_stats *c = &stats->cpus[i];

		put(d, c->bytes_in);
		put(d, c->bytes_decoded);
		put(d, c->bytes_lost);
		put(d, c->bytes_out_of_scope);
		put(d, c->n_insns);
		put(d, c->n_gaps);
		put(d, c->t_first);
		put(d, c->t_last);
	}
	put(d, stats->n_insns_early);
	for (size_t i = 0; i < stats->n_gap_reasons; i++) {
		put(d, stats->n_gaps[i]);
		put(d, stats->gap_bytes[i]);
	}
}

static void decode(struct digest *d, const struct ptd_options *options, uint64_t cut_size)
{
	_cleanup_(ptd_decoder_freep) struct ptd_decoder *decoder = NULL;
	const struct ptd_batch *batch;
	uint64_t slice = UINT64_MAX;

	d->r =
	    decoder_new(options, &(struct decoder_config){ .cut_size = cut_size }, &decoder, NULL);
	while (d->r == 0 && (d->r = ptd_decoder_next(decoder, &batch)) == 0) {
		if (batch->slice->id != slice)
			put_slice(d, batch->slice);
		slice = batch->slice->id;
		put_batch(d, batch);
	}
	if (d->r == PTD_END) {
		put_stats(d, ptd_decoder_stats(decoder));
		d->r = 0;
	}
	if (decoder)
		d->parts = *decoder_parts(decoder);
}

struct digest digest_of(const struct ptd_options *given, size_t n_threads, uint64_t cut_size)
{
	struct ptd_options options = *given;
	struct digest d = {};
	const int r = ptd_threads_new(n_threads, &options.threads);

	if (r < 0)
		error(1, -r, "cannot start threads");
	decode(&d, &options, cut_size);
	ptd_threads_free(options.threads);
	return d;
}
