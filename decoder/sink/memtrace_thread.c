/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/sink/memtrace_thread.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "decoder/sink/memtrace_flow.h"

/*
 * How old a timestamp may become, in ticks of the stream's clock (ns, as a rule): within a slice;
 * and after an event, at which the kernel may have run for long.
 */
#define PAIR_QUANTUM 10000u
#define PAIR_EVENT   1000u

/* Return: the id as the file has it. DynamoRIO takes 0 for no thread and all ones for idle. */
static uint64_t shown_id(uint32_t id)
{
	return id == 0 || id == PTD_ID_UNKNOWN ? UINT64_MAX : id;
}

static void set_comm(struct memtrace_thread *thread, const char *comm)
{
	size_t n = 0;

	if (!comm || !comm[0])
		comm = "unknown";
	for (; comm[n] && n + 1 < sizeof(thread->comm); n++) {
		const unsigned char c = (unsigned char)comm[n];

		/* Dots divide the file's name. */
		thread->comm[n] =
		    (char)(c < 0x80 && (isalnum(c) || c == '-' || c == '_') ? c : '_');
	}
	thread->comm[n] = '\0';
}

struct memtrace_thread *memtrace_thread_new(const struct ptd_slice *slice,
					    struct memtrace_out_pool *pool,
					    const struct memtrace_clock *clock)
{
	struct memtrace_thread *thread = malloc(sizeof(*thread));

	if (!thread)
		return NULL;
	*thread = (struct memtrace_thread){
		.pool = pool,
		.clock = clock,
		.pid = shown_id(slice->pid),
		.tid = shown_id(slice->tid),
		.space = slice->space,
		.slice = slice->id,
		.pair_due = true,
	};
	return thread;
}

struct memtrace_thread *memtrace_thread_free(struct memtrace_thread *thread)
{
	if (!thread)
		return NULL;
	memtrace_file_deinit(&thread->file);
	memtrace_frames_deinit(&thread->frames);
	free(thread);
	return NULL;
}

int memtrace_thread_begin(struct memtrace_thread *thread, const struct ptd_slice *slice,
			  struct memtrace_code *code)
{
	thread->pair_due |= thread->slice != slice->id;
	thread->space_changed |= thread->space != slice->space;
	thread->slice = slice->id;
	thread->space = slice->space;
	thread->cpu = slice->cpu;
	thread->t0 = slice->t0;

	if (thread->code_serial != code->serial) {
		memtrace_file_set_code(&thread->file, code);
		thread->code_serial = code->serial;
	}
	if (thread->started)
		return memtrace_out_use(&thread->file.out);
	set_comm(thread, slice->comm);
	return 0;
}

static void set_now(struct memtrace_thread *thread, uint64_t t)
{
	/* Runs before the first packet with a time have no time of their own. */
	thread->now = t > thread->t0 ? t : thread->t0;
}

int memtrace_thread_pair(struct memtrace_thread *thread)
{
	thread->pair_due = false;
	thread->paired_at = thread->now;
	thread->pair_age = PAIR_QUANTUM;
	return memtrace_file_pair(&thread->file, thread->now, thread->cpu);
}

/* Create the file, with its first timestamp and its first window, which is 0: DynamoRIO refuses a
 * file of several windows that begins with another. */
static int start(struct memtrace_thread *thread)
{
	_cleanup_(freep) char *stem = NULL;
	int r;

	if (asprintf(&stem, "drmemtrace.%s.%" PRId64, thread->comm, (int64_t)thread->tid) < 0) {
		stem = NULL;
		return -ENOMEM;
	}
	r = memtrace_file_create(&thread->file, thread->pool, thread->clock, stem, thread->pid,
				 thread->tid);
	if (r < 0)
		return r;
	thread->started = true;
	thread->gap = false; /* there is nothing before it */
	r = memtrace_thread_pair(thread);
	return r < 0 ? r : memtrace_file_window(&thread->file);
}

/*
 * Write the window that is due; it replaces a marker 1 that is due. A timestamp is written before
 * the window, where viewers expect it, unless it would follow a branch: that is illegal even at a
 * window.
 */
static int window(struct memtrace_thread *thread)
{
	int r;

	if (thread->xfer_due) {
		thread->xfer_due = false;
		memtrace_frames_restore(&thread->frames, thread->xfer_n_frames);
	}
	if (!thread->after_branch) {
		r = memtrace_thread_pair(thread);
		if (r < 0)
			return r;
	} else {
		thread->pair_due = true;
	}
	thread->gap = false;
	return memtrace_file_window(&thread->file);
}

int memtrace_thread_ready(struct memtrace_thread *thread)
{
	int r;

	if (!thread->started) {
		r = start(thread);
		if (r < 0)
			return r;
	}
	return thread->gap ? window(thread) : 0;
}

void memtrace_thread_skip(struct memtrace_thread *thread)
{
	memtrace_flow_drop(thread);
	thread->after = MEMTRACE_AFTER_NOTHING;
	thread->gap = true;
}

static int mark_gap(struct memtrace_thread *thread, const struct ptd_mark *mark)
{
	/* Where the code is missing, the address at which control arrived is still known. */
	const bool arrived = mark->reason == PTD_GAP_NO_CODE || mark->reason == PTD_GAP_NO_OBJECT ||
			     mark->reason == PTD_GAP_WRONG_OBJECT;
	int r = 0;

	if (thread->pending && thread->after == MEMTRACE_AFTER_INSN && arrived)
		r = memtrace_flow_settle(thread, mark->ip);
	memtrace_thread_skip(thread);
	return r;
}

static int mark_async(struct memtrace_thread *thread, const struct ptd_mark *mark)
{
	int r;

	if (!mark->ip)
		return mark_gap(thread, mark);

	r = memtrace_flow_arrive(thread, mark->ip);
	if (r < 0)
		return r;
	thread->space_changed = false;
	thread->after = MEMTRACE_AFTER_ASYNC;
	thread->async_ip = mark->ip;
	thread->pair_age = PAIR_EVENT;
	return 0;
}

static void mark_off(struct memtrace_thread *thread)
{
	if (thread->after != MEMTRACE_AFTER_INSN)
		return;

	switch (memtrace_insn_class(&thread->last)) {
	case PTD_INSN_SYSCALL:
	case PTD_INSN_SYSENTER:
	case PTD_INSN_INTERRUPT:
	case PTD_INSN_VM:
		thread->after = MEMTRACE_AFTER_SYSCALL;
		thread->pair_age = PAIR_EVENT;
		break;
	default:
		/* A branch to code that is not traced: what follows came from there. */
		memtrace_flow_drop(thread);
		thread->after = MEMTRACE_AFTER_NOTHING;
		thread->gap = true;
	}
}

int memtrace_thread_mark(struct memtrace_thread *thread, const struct ptd_mark *mark)
{
	set_now(thread, mark->t);
	switch (mark->kind) {
	case PTD_MARK_GAP:
	case PTD_MARK_OUT_OF_SCOPE:
		return mark_gap(thread, mark);
	case PTD_MARK_ASYNC:
		return mark_async(thread, mark);
	case PTD_MARK_OFF:
		mark_off(thread);
		return 0;
	default:
		/* The format has no marker for it. */
		return 0;
	}
}

/* Write the run's instructions, all but the one that must wait for its outcome. */
static int write_insns(struct memtrace_thread *thread, const struct ptd_run *run, size_t from)
{
	const struct ptd_insn *insns = run->block->insns;
	const size_t last = (size_t)run->first + run->n - 1;
	const bool held = memtrace_insn_needs_outcome(insns[last].iclass);
	const size_t end = held ? last : last + 1;
	size_t i = run->first;
	int r;

	if (i < end) {
		r = memtrace_flow_xfer(thread);
		if (r < 0)
			return r;
	}

	/* A timestamp that could not follow a branch goes behind the instruction after it. */
	if (thread->pair_due && i < end && !memtrace_insn_branches(insns[i].iclass)) {
		r = memtrace_file_insns(&thread->file, run->block, run->base, i, i + 1, from);
		if (r < 0)
			return r;
		i++;
		thread->after_branch = false;
		r = memtrace_thread_pair(thread);
		if (r < 0)
			return r;
	}
	if (i < end) {
		r = memtrace_file_insns(&thread->file, run->block, run->base, i, end, from);
		if (r < 0)
			return r;
		thread->after_branch = memtrace_insn_branches(insns[end - 1].iclass);
	}
	thread->pending = held;
	thread->pending_bytes = last >= from;
	return 0;
}

/* Return: whether the timestamp has become too old. */
static bool is_pair_due(const struct memtrace_thread *thread)
{
	return thread->pair_due || (thread->now > thread->paired_at &&
				    thread->now - thread->paired_at >= thread->pair_age);
}

/* @run was written, but perhaps for a branch at its end. */
static void set_last(struct memtrace_thread *thread, const struct ptd_run *run)
{
	const size_t last = (size_t)run->first + run->n - 1;

	if (last == 0) {
		thread->has_before = thread->after != MEMTRACE_AFTER_NOTHING;
		thread->before = thread->last;
	}
	thread->last = (struct memtrace_insn){ run->block, run->base, last };
	thread->after = MEMTRACE_AFTER_INSN;
}

int memtrace_thread_run(struct memtrace_thread *thread, const struct ptd_run *run)
{
	const size_t last = (size_t)run->first + run->n - 1;
	size_t from;
	int r;

	assert(run->n > 0 && last < run->block->n_insns);

	set_now(thread, run->t);
	r = memtrace_flow_arrive(thread, ptd_run_ip(run, 0));
	if (r < 0)
		return r;
	thread->space_changed = false;

	r = memtrace_thread_ready(thread);
	if (r < 0)
		return r;
	thread->pair_due = is_pair_due(thread);
	if (thread->pair_due && !thread->after_branch && !thread->xfer_due) {
		r = memtrace_thread_pair(thread);
		if (r < 0)
			return r;
	}

	r = memtrace_file_announce(&thread->file, run, &from);
	if (r < 0)
		return r;
	r = write_insns(thread, run, from);
	if (r < 0)
		return r;

	set_last(thread, run);
	return 0;
}

/* Return: whether the records of a run that follows are all that has to be written before it. */
static bool can_copy(const struct memtrace_thread *thread)
{
	return thread->started && !thread->gap && !thread->xfer_due && !thread->pair_due &&
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

	set_last(thread, before);
	set_last(thread, run);
	thread->after_branch = memtrace_insn_branches(insn->iclass);
	thread->pending = memtrace_expansion_waits(&expansion->runs[i]);
	thread->pending_bytes = false;
}

int memtrace_thread_copy(struct memtrace_thread *thread, const struct ptd_batch *batch,
			 const struct memtrace_expansion *expansion, struct memtrace_known *known,
			 size_t i, size_t *ret_n)
{
	const uint32_t start = i > 0 ? expansion->runs[i - 1].end : 0;
	uint64_t n_insns = thread->file.n_insns;
	bool waits = thread->pending;
	size_t end = i;
	int r;

	*ret_n = 0;
	if (!can_copy(thread))
		return 0;
	for (; end < batch->n_runs && memtrace_expansion_follows(&expansion->runs[end]); end++) {
		const struct ptd_run *run = &batch->runs[end];
		const struct memtrace_expansion_run *e = &expansion->runs[end];

		set_now(thread, run->t);
		if (is_pair_due(thread) || n_insns + waits + run->n > thread->file.chunk_end ||
		    e->end - start > MEMTRACE_OUT_BUFFER ||
		    !memtrace_file_is_announced(&thread->file, known, memtrace_expansion_site(e),
						run))
			break;
		n_insns += waits;
		waits = memtrace_expansion_waits(e);
		n_insns += (uint64_t)run->n - waits;
	}
	if (end == i)
		return 0;
	r = memtrace_file_records(&thread->file, expansion->records + start,
				  expansion->runs[end - 1].end - start,
				  n_insns - thread->file.n_insns);
	if (r < 0)
		return r;
	set_copied(thread, batch, expansion, end - 1);
	*ret_n = end - i;
	return 0;
}

int memtrace_thread_finish(struct memtrace_thread *thread)
{
	int r;

	if (!thread->started)
		return 0;
	r = memtrace_out_use(&thread->file.out);
	if (r < 0)
		return r;
	/* A branch that still waits for its outcome is left out. */
	return memtrace_file_finish(&thread->file, thread->tid);
}
