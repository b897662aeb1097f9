/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/cmd/verify.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "ptd/decode.h"

/* Items that are shown before and from the difference on. */
#define CONTEXT 8

/* An instruction or a mark. */
struct item {
	uint32_t cpu, pid, tid;
	uint64_t t, ip;
	const struct ptd_block *block; /* NULL: it is a mark */
	const struct ptd_insn *insn;   /* of the block */
	const struct ptd_symbol *symbol;
	struct ptd_mark mark;
};

struct reader {
	const struct verify_stream *stream;
	const struct ptd_batch *batch; /* NULL: another one must be asked for */
	size_t run, insn, mark;        /* what comes next in it */
	bool has_item;
	struct item item; /* the next one */
};

/* The reference does not report the others. */
static bool is_compared(const struct ptd_mark *mark)
{
	switch (mark->kind) {
	case PTD_MARK_CFE:
	case PTD_MARK_EVD:
	case PTD_MARK_PEBS:
	case PTD_MARK_TRIG:
	case PTD_MARK_MWAIT:
	case PTD_MARK_PWRE:
	case PTD_MARK_EXSTOP:
	case PTD_MARK_PWRX:
		return false;
	default:
		return true;
	}
}

/* Get the next item out of the batch. Return: whether there is one. */
static bool take_item(struct reader *r)
{
	const struct ptd_batch *b = r->batch;
	const struct ptd_run *run;

	while (r->mark < b->n_marks && b->marks[r->mark].run == r->run && r->insn == 0) {
		const struct ptd_mark *mark = &b->marks[r->mark++];

		if (!is_compared(mark))
			continue;
		r->item.t = mark->t;
		r->item.ip = mark->ip;
		r->item.block = NULL;
		r->item.mark = *mark;
		return true;
	}
	if (r->run == b->n_runs)
		return false;
	run = &b->runs[r->run];
	r->item.t = run->t;
	r->item.ip = ptd_run_ip(run, r->insn);
	r->item.block = run->block;
	r->item.insn = &run->block->insns[run->first + r->insn];
	r->item.symbol = b->symbols[r->item.insn->symbol];
	if (++r->insn == run->n) {
		r->insn = 0;
		r->run++;
	}
	return true;
}

/* Get the next item. Return: 0, PTD_END, or negative errno. */
static int read_item(struct reader *r)
{
	int status;

	r->has_item = false;
	while (!r->batch || !take_item(r)) {
		status = r->stream->next(r->stream->userdata, &r->batch);
		if (status != 0) {
			r->batch = NULL;
			return status;
		}
		r->run = r->insn = r->mark = 0;
		r->item.cpu = r->batch->slice->cpu;
		r->item.pid = r->batch->slice->pid;
		r->item.tid = r->batch->slice->tid;
	}
	r->has_item = true;
	return 0;
}

/* Where no bytes are lost, libipt may have read ahead, and the offset is of no account. */
static bool is_same_gap(const struct ptd_mark *a, const struct ptd_mark *b)
{
	return a->reason == b->reason && a->n_bytes == b->n_bytes &&
	       (a->n_bytes == 0 || a->offset == b->offset);
}

static bool is_same_mark(const struct ptd_mark *a, const struct ptd_mark *b)
{
	return a->kind == b->kind && a->value == b->value && a->extra == b->extra &&
	       (a->kind != PTD_MARK_GAP || is_same_gap(a, b));
}

static bool is_same_insn(const struct item *a, const struct item *b)
{
	return a->block->mode == b->block->mode && a->insn->size == b->insn->size &&
	       memcmp(a->block->bytes + a->insn->offset, b->block->bytes + b->insn->offset,
		      a->insn->size) == 0;
}

static bool is_same(const struct item *a, const struct item *b)
{
	if (a->cpu != b->cpu || a->pid != b->pid || a->tid != b->tid || a->t != b->t ||
	    a->ip != b->ip || !a->block != !b->block)
		return false;
	return a->block ? is_same_insn(a, b) : is_same_mark(&a->mark, &b->mark);
}

static void print_item(FILE *f, const struct item *item)
{
	const struct ptd_mark *mark = &item->mark;

	fprintf(f, "  CPU %" PRIu32, item->cpu);
	if (item->tid == PTD_ID_UNKNOWN)
		fputs(", unknown thread", f);
	else
		fprintf(f, ", thread %" PRIu32 "/%" PRIu32, item->pid, item->tid);
	fprintf(f, ", time %" PRIu64 ": ", item->t);
	if (item->block) {
		fprintf(f, "%" PRIx64 " %s (%s)\n", item->ip,
			item->insn->symbol ? item->symbol->name : "[unknown]",
			item->block->object->name);
		return;
	}
	if (mark->kind == PTD_MARK_GAP)
		fprintf(f, "gap, %s, %" PRIu64 " bytes at %" PRIu64,
			ptd_gap_reason_name(mark->reason), mark->n_bytes, mark->offset);
	else
		fprintf(f, "%s %" PRIx64 " %" PRIx64, ptd_mark_kind_name(mark->kind), mark->value,
			mark->extra);
	if (item->ip)
		fprintf(f, ", %" PRIx64, item->ip);
	fputc('\n', f);
}

/* Print the item that differs, and those behind it. Return: 0 or negative errno. */
static int print_rest(FILE *f, struct reader *r)
{
	int status = r->has_item ? 0 : PTD_END;

	fprintf(f, "%s goes on with:\n", r->stream->name);
	for (size_t i = 0; i < CONTEXT && status == 0; i++) {
		print_item(f, &r->item);
		status = read_item(r);
	}
	if (status == PTD_END)
		fputs("  the end\n", f);
	return status < 0 ? status : 0;
}

static int print_difference(FILE *f, struct reader readers[static 2], const struct item *before,
			    uint64_t n_before)
{
	int r;

	fputs("Both engines:\n", f);
	for (uint64_t i = n_before > CONTEXT ? n_before - CONTEXT : 0; i < n_before; i++)
		print_item(f, &before[i % CONTEXT]);
	r = print_rest(f, &readers[0]);
	return r < 0 ? r : print_rest(f, &readers[1]);
}

int verify_streams(const struct verify_stream streams[static 2], FILE *f, uint64_t *ret_n_insns)
{
	struct reader readers[] = { { .stream = &streams[0] }, { .stream = &streams[1] } };
	struct item before[CONTEXT];
	uint64_t n_items = 0, n_insns = 0;
	int r;

	for (;; n_items++) {
		for (size_t i = 0; i < ARRAY_LEN(readers); i++) {
			r = read_item(&readers[i]);
			if (r < 0)
				return r;
		}
		if (!readers[0].has_item && !readers[1].has_item)
			break;
		if (!readers[0].has_item || !readers[1].has_item ||
		    !is_same(&readers[0].item, &readers[1].item)) {
			r = print_difference(f, readers, before, n_items);
			*ret_n_insns = n_insns;
			return r < 0 ? r : VERIFY_DIFFERENT;
		}
		n_insns += readers[0].item.block != NULL;
		before[n_items % CONTEXT] = readers[0].item;
	}
	*ret_n_insns = n_insns;
	return VERIFY_EQUAL;
}
