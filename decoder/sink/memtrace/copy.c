/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/sink/memtrace/copy.h"

#include "decoder/sink/memtrace/markers.h"
#include "decoder/sink/memtrace/record.h"

/* Return: whether the records of a run that follows are all that has to be written before it. */
static bool can_copy(const struct memtrace_thread *thread)
{
	return thread->started && !thread->gap && !thread->xfer_due &&
	       thread->after == MEMTRACE_AFTER_INSN && !(thread->pending && thread->pending_bytes);
}

/* The records of run @i and of those before it were copied. */
static void set_copied(struct memtrace_thread *thread, const struct ptd_batch *batch,
		       const struct memtrace_expansion *expansion, size_t i)
{
	const struct ptd_run *run = &batch->runs[i], *before = &batch->runs[i - 1];
	const size_t n_own = run->n - memtrace_expansion_waits(&expansion->runs[i]);
	/* Its last record is of this instruction. */
	const struct ptd_insn *insn = n_own ? &run->block->insns[run->first + n_own - 1]
					    : &before->block->insns[before->first + before->n - 1];

	memtrace_thread_set_now(thread, run->t);
	memtrace_thread_set_last(thread, before);
	memtrace_thread_set_last(thread, run);
	thread->after_branch = memtrace_insn_branches(insn->iclass);
	thread->pending = memtrace_expansion_waits(&expansion->runs[i]);
	thread->pending_bytes = false;
}

/* What is copied next. */
struct copying {
	const struct ptd_batch *batch;
	const struct memtrace_expansion *expansion;
	struct memtrace_known *known;
	uint32_t start;   /* offset of the first record */
	uint64_t n_insns; /* in the file and in the records up to here */
	bool waits;       /* the branch before run @i comes with its records */
};

/* Return: whether run @i, which follows the one before, can be copied, too. */
static bool can_copy_run(struct memtrace_thread *thread, const struct copying *c, size_t i)
{
	const struct ptd_run *run = &c->batch->runs[i];
	const struct memtrace_expansion_run *e = &c->expansion->runs[i];

	memtrace_thread_set_now(thread, run->t);
	return !memtrace_thread_is_pair_due(thread) &&
	       c->n_insns + c->waits + run->n <= thread->file.chunk_end &&
	       e->end - c->start <= MEMTRACE_OUT_BUFFER &&
	       memtrace_file_is_announced(&thread->file, c->known, memtrace_expansion_site(e), run);
}

/*
 * Copy only the branch before run @i, if that comes with its records, and write the markers of
 * calls behind it.
 */
static int copy_branch(struct memtrace_thread *thread, struct copying *c)
{
	const bool is_cond = memtrace_insn_class(&thread->last) == PTD_INSN_JUMP_COND;
	const uint32_t size = (is_cond ? 1 : 2) * sizeof(struct memtrace_record);
	int r;

	if (c->waits) {
		r = memtrace_file_records(&thread->file, c->expansion->records + c->start, size, 1,
					  thread->last.block->insns[thread->last.index].symbol);
		if (r == 0)
			r = memtrace_thread_note_return(thread, &thread->last);
		if (r < 0)
			return r;
		c->start += size;
		c->n_insns++;
		c->waits = false;
		thread->pending = false;
		thread->after_branch = true;
	}
	return memtrace_thread_write_calls(thread);
}

/* Note the calls and returns among the records of run @i, and of the branch before it. */
static int note_returns(struct memtrace_thread *thread, const struct copying *c, size_t i)
{
	const uint32_t flow = MEMTRACE_EXPANSION_CALLS | MEMTRACE_EXPANSION_RETURNS;
	const struct memtrace_expansion_run *e = &c->expansion->runs[i];
	const struct ptd_run *run = &c->batch->runs[i];
	int r = 0;

	if (c->waits && e[-1].what & flow)
		r = memtrace_thread_note_return(
		    thread, &(struct memtrace_insn){ run[-1].block, run[-1].base,
						     run[-1].first + run[-1].n - 1u });
	if (r == 0 && e->what & flow && !memtrace_expansion_waits(e))
		r = memtrace_thread_note_return(
		    thread,
		    &(struct memtrace_insn){ run->block, run->base, run->first + run->n - 1u });
	return r;
}

int memtrace_thread_copy(struct memtrace_thread *thread, const struct ptd_batch *batch,
			 const struct memtrace_expansion *expansion, struct memtrace_known *known,
			 size_t i, size_t end, size_t *ret_n)
{
	struct copying c = {
		.batch = batch,
		.expansion = expansion,
		.known = known,
		.start = i > 0 ? expansion->runs[i - 1].end : 0,
		.n_insns = thread->file.n_insns,
		.waits = thread->pending,
	};
	const struct ptd_run *last;
	size_t at = i;
	int r;

	*ret_n = 0;
	if (!can_copy(thread))
		return 0;
	if (end > batch->n_runs)
		end = batch->n_runs;
	if (thread->calls.items.n > 0) {
		/* Those that are not written now stand before the next run, too. */
		end = i + 1;
		if (!memtrace_expansion_follows(&expansion->runs[i]) ||
		    !can_copy_run(thread, &c, i))
			return 0;
		r = copy_branch(thread, &c);
		if (r < 0)
			return r;
	}
	for (; at < end && memtrace_expansion_follows(&expansion->runs[at]); at++) {
		const struct memtrace_expansion_run *e = &expansion->runs[at];

		if (!can_copy_run(thread, &c, at))
			break;
		r = note_returns(thread, &c, at);
		if (r < 0)
			return r;
		c.n_insns += c.waits;
		c.waits = memtrace_expansion_waits(e);
		c.n_insns += (uint64_t)batch->runs[at].n - c.waits;
	}
	if (at == i)
		return 0;
	last = &batch->runs[at - 1];
	r = memtrace_file_records(
	    &thread->file, expansion->records + c.start, expansion->runs[at - 1].end - c.start,
	    c.n_insns - thread->file.n_insns, last->block->insns[last->first + last->n - 1].symbol);
	if (r < 0)
		return r;
	set_copied(thread, batch, expansion, at - 1);
	*ret_n = at - i;
	return 0;
}
