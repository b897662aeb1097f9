/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "tests/lib/transcript.h"

#include <inttypes.h>

struct transcript {
	FILE *f;
	bool slices, names;
	uint64_t slice, t;
	uint64_t ip, n_same; /* of the instruction that is not printed yet; @n_same 0: none */
	const char *name;    /* "": it has none */
	bool in_line;
	uint64_t gap_bytes; /* of the gaps so far */
};

static void flush_words(struct transcript *p)
{
	if (p->n_same == 0)
		return;
	fprintf(p->f, "%s%" PRIx64, p->in_line ? " " : "", p->ip);
	if (p->names)
		fprintf(p->f, "=%s", p->name);
	if (p->n_same > 1)
		fprintf(p->f, "x%" PRIu64, p->n_same);
	p->in_line = true;
	p->n_same = 0;
}

static void end_line(struct transcript *p)
{
	flush_words(p);
	if (p->in_line)
		fputc('\n', p->f);
	p->in_line = false;
}

static void put_time(struct transcript *p, uint64_t t)
{
	if (t == p->t)
		return;
	end_line(p);
	fprintf(p->f, "t %" PRIu64 "\n", t);
	p->t = t;
}

static void put_slice(struct transcript *p, const struct ptd_slice *slice)
{
	if (slice->id == p->slice)
		return;
	p->slice = slice->id;
	if (!p->slices)
		return;
	end_line(p);
	fprintf(p->f, "cpu %" PRIu32, slice->cpu);
	if (slice->tid == PTD_ID_UNKNOWN)
		fprintf(p->f, " ?\n");
	else
		fprintf(p->f, " %" PRIu32 "/%" PRIu32 " %s\n", slice->pid, slice->tid, slice->comm);
}

/* An address that is not known is left out. */
static void put_words(struct transcript *p, const char *words, uint64_t ip)
{
	fputs(words, p->f);
	if (ip)
		fprintf(p->f, " %" PRIx64, ip);
	fputc('\n', p->f);
}

static void put_mark(struct transcript *p, const struct ptd_mark *mark)
{
	end_line(p);
	put_time(p, mark->t);
	switch (mark->kind) {
	case PTD_MARK_GAP:
		fprintf(p->f, "gap %s", ptd_gap_reason_name(mark->reason));
		if (mark->ip)
			fprintf(p->f, " ip %" PRIx64, mark->ip);
		fprintf(p->f, " offset %" PRIu64 " bytes %" PRIu64 "\n", mark->offset,
			mark->n_bytes);
		p->gap_bytes += mark->n_bytes;
		return;
	case PTD_MARK_ASYNC:
	case PTD_MARK_OFF:
	case PTD_MARK_STOP:
	case PTD_MARK_OUT_OF_SCOPE:
	case PTD_MARK_EXSTOP:
		break;
	default:
		fprintf(p->f, "%s %" PRIx64 " %" PRIx64, ptd_mark_kind_name(mark->kind),
			mark->value, mark->extra);
		put_words(p, "", mark->ip);
		return;
	}
	put_words(p, ptd_mark_kind_name(mark->kind), mark->ip);
}

static void put_run(struct transcript *p, const struct ptd_batch *batch, const struct ptd_run *run)
{
	put_time(p, run->t);
	for (size_t i = 0; i < run->n; i++) {
		const uint64_t ip = ptd_run_ip(run, i);

		if (p->n_same == 0 || ip != p->ip) {
			flush_words(p);
			p->ip = ip;
			p->name = batch->symbols[run->block->insns[run->first + i].symbol]->name;
		}
		p->n_same++;
	}
}

static void put_batch(struct transcript *p, const struct ptd_batch *batch)
{
	size_t m = 0;

	put_slice(p, batch->slice);
	for (size_t i = 0; i <= batch->n_runs; i++) {
		while (m < batch->n_marks && batch->marks[m].run == i)
			put_mark(p, &batch->marks[m++]);
		if (i < batch->n_runs)
			put_run(p, batch, &batch->runs[i]);
	}
}

static void put_account(struct transcript *p, const struct ptd_stats *stats)
{
	uint64_t in = 0, decoded = 0, lost = 0, out_of_scope = 0, gap_bytes = 0;

	for (size_t i = 0; i < stats->n_cpus; i++) {
		in += stats->cpus[i].bytes_in;
		decoded += stats->cpus[i].bytes_decoded;
		lost += stats->cpus[i].bytes_lost;
		out_of_scope += stats->cpus[i].bytes_out_of_scope;
	}
	end_line(p);
	fprintf(p->f, "in %" PRIu64 " decoded %" PRIu64 " lost %" PRIu64, in, decoded, lost);
	if (out_of_scope > 0)
		fprintf(p->f, " out of scope %" PRIu64, out_of_scope);
	fputc('\n', p->f);

	/* No transcript is expected to have this line. */
	for (size_t i = 0; i < stats->n_gap_reasons; i++)
		gap_bytes += stats->gap_bytes[i];
	if (gap_bytes != lost || p->gap_bytes != lost)
		fprintf(p->f, "gaps of %" PRIu64 " bytes, by reason %" PRIu64 ", do not add up\n",
			p->gap_bytes, gap_bytes);
}

int transcript_print(struct ptd_decoder *decoder, bool slices, bool names, FILE *f)
{
	struct transcript p = { .f = f, .slices = slices, .names = names, .slice = UINT64_MAX };
	const struct ptd_batch *batch;
	int r;

	while ((r = ptd_decoder_next(decoder, &batch)) == 0)
		put_batch(&p, batch);
	if (r < 0)
		return r;
	put_account(&p, ptd_decoder_stats(decoder));
	return 0;
}
