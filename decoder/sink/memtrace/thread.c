/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/sink/memtrace/thread.h"

#include <assert.h>
#include <ctype.h>

#include "decoder/sink/memtrace/events.h"
#include "decoder/sink/memtrace/markers.h"
#include "decoder/sink/memtrace/record.h"
#include "decoder/sink/memtrace/transition.h"
#include "ptd/decode.h"

/* Return: the id as the file has it, for one that needs the number of the CPU, or @cpu = 0. */
static uint64_t shown_id(uint32_t id, uint32_t cpu)
{
	if (id == 0)
		return MEMTRACE_ID_IDLE + cpu;
	return id == PTD_ID_UNKNOWN ? MEMTRACE_ID_UNKNOWN + cpu : id;
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

struct memtrace_thread *memtrace_thread_new(const struct ptd_slice *slice, const char *comm,
					    struct memtrace_directory *directory)
{
	struct memtrace_thread *thread = malloc(sizeof(*thread));

	if (!thread)
		return NULL;
	*thread = (struct memtrace_thread){
		.directory = directory,
		.kernel = memtrace_kernel_thread(&directory->kernel, slice->pid, slice->tid),
		.pid = shown_id(slice->pid, 0),
		.tid = shown_id(slice->tid, slice->cpu),
		.space = slice->space,
		.slice = slice->id,
		.cpu = slice->cpu,
		.pair_due = true,
	};
	set_comm(thread, comm);
	return thread;
}

struct memtrace_thread *memtrace_thread_free(struct memtrace_thread *thread)
{
	if (!thread)
		return NULL;
	memtrace_file_deinit(&thread->file);
	memtrace_frames_deinit(&thread->frames);
	memtrace_returns_deinit(&thread->returns);
	vec_deinit(&thread->calls.items);
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
	return thread->started ? memtrace_out_use(&thread->file.out) : 0;
}

/* Control is at @ip now: write the markers that explain how it came there, with the time
 * thread->now. */
static int arrive_at(struct memtrace_thread *thread, uint64_t ip)
{
	const int r = memtrace_thread_write_syscall(thread);

	if (r < 0)
		return r;
	return thread->directory->whole_system ? memtrace_thread_arrive_in_system(thread, ip)
					       : memtrace_thread_arrive_in_program(thread, ip);
}

/* --- what the stream shows -------------------------------------------------------------------- */

void memtrace_thread_skip(struct memtrace_thread *thread)
{
	memtrace_thread_drop_branch(thread);
	thread->after = MEMTRACE_AFTER_NOTHING;
	thread->has_last = false;
	thread->gap = true;
}

static int mark_gap(struct memtrace_thread *thread, const struct ptd_mark *mark)
{
	/* Where the code is missing, the address at which control arrived is still known. */
	const bool arrived = mark->reason == PTD_GAP_NO_CODE || mark->reason == PTD_GAP_NO_OBJECT ||
			     mark->reason == PTD_GAP_WRONG_OBJECT ||
			     mark->reason == PTD_GAP_RECORDS_DROPPED ||
			     mark->reason == PTD_GAP_STEPPED;
	int r = 0;

	thread->left = true;
	if (thread->pending && thread->after == MEMTRACE_AFTER_INSN && arrived)
		r = memtrace_thread_write_branch(thread, mark->ip);
	memtrace_thread_skip(thread);
	return r;
}

static int mark_async(struct memtrace_thread *thread, const struct ptd_mark *mark)
{
	int r;

	if (!mark->ip)
		return mark_gap(thread, mark);
	/* What interrupts the kernel happens between two instructions of the program. */
	if (!thread->directory->whole_system && memtrace_is_kernel(mark->ip))
		return 0;

	r = arrive_at(thread, mark->ip);
	if (r < 0)
		return r;
	thread->space_changed = false;
	thread->after = MEMTRACE_AFTER_ASYNC;
	thread->left = true;
	thread->left_at = thread->now;
	thread->async_ip = mark->ip;
	thread->pair_age = MEMTRACE_PAIR_EVENT;
	return 0;
}

void memtrace_thread_leave_out_kernel(struct memtrace_thread *thread)
{
	memtrace_thread_leave_by_insn(thread);
}

int memtrace_thread_mark(struct memtrace_thread *thread, const struct ptd_mark *mark)
{
	memtrace_thread_set_now(thread, mark->t);
	switch (mark->kind) {
	case PTD_MARK_GAP:
	case PTD_MARK_OUT_OF_SCOPE:
		return mark_gap(thread, mark);
	case PTD_MARK_ASYNC:
		return mark_async(thread, mark);
	case PTD_MARK_OFF:
		thread->left = true;
		thread->left_at = thread->now;
		memtrace_thread_leave_by_insn(thread);
		return 0;
	default:
		/* The format has no marker for it. */
		return 0;
	}
}

int memtrace_thread_switch(struct memtrace_thread *thread, const struct ptd_slice *slice)
{
	int r = 0;

	thread->left = true;
	thread->now = slice->t0 > thread->now ? slice->t0 : thread->now;
	if (thread->started) {
		r = memtrace_out_use(&thread->file.out);
		if (r == 0)
			r = memtrace_thread_write_syscall(thread);
		if (r == 0)
			r = memtrace_file_settle(&thread->file, 0);
	}
	if (r < 0)
		return r;
	memtrace_thread_drop_branch(thread);
	memtrace_frames_deinit(&thread->frames);
	thread->frames = (struct memtrace_frames){};
	thread->after = MEMTRACE_AFTER_NOTHING;
	thread->has_last = thread->has_before = false;
	thread->gap = thread->xfer_due = thread->after_branch = false;
	thread->slice = slice->id;
	thread->pid = shown_id(slice->pid, 0);
	thread->tid = shown_id(slice->tid, slice->cpu);
	thread->kernel = memtrace_kernel_thread(&thread->directory->kernel, slice->pid, slice->tid);
	thread->pair_due = true;
	if (!thread->started)
		return 0;
	r = memtrace_file_switch(&thread->file, thread->pid, thread->tid);
	return r < 0 ? r : memtrace_thread_write_pair(thread);
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
		r = memtrace_thread_write_xfer(thread);
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
		r = memtrace_thread_write_pair(thread);
		if (r < 0)
			return r;
	}
	if (i < end) {
		r = memtrace_file_insns(&thread->file, run->block, run->base, i, end, from);
		if (r == 0)
			r = memtrace_thread_note_return(
			    thread, &(struct memtrace_insn){ run->block, run->base, end - 1 });
		if (r < 0)
			return r;
		thread->after_branch = memtrace_insn_branches(insns[end - 1].iclass);
	}
	thread->pending = held;
	thread->pending_bytes = last >= from;
	/* An expansion goes on from here as if the branch were written. */
	return held ? memtrace_file_symbol(&thread->file, insns[last].symbol) : 0;
}

int memtrace_thread_run(struct memtrace_thread *thread, const struct ptd_batch *batch,
			const struct ptd_run *run)
{
	size_t from;
	int r;

	assert(run->n > 0 && run->first + run->n <= run->block->n_insns);

	memtrace_thread_set_now(thread, run->t);
	r = arrive_at(thread, ptd_run_ip(run, 0));
	if (r < 0)
		return r;
	thread->space_changed = false;

	r = memtrace_thread_write_calls(thread);
	if (r == 0)
		r = memtrace_thread_make_ready(thread);
	if (r == 0)
		r = memtrace_symbols_add(&thread->directory->symbols, batch, run);
	if (r == 0)
		r = memtrace_mappings_add(&thread->directory->mappings, thread->pid, run);
	if (r < 0)
		return r;
	thread->pair_due = memtrace_thread_is_pair_due(thread);
	if (thread->pair_due && !thread->after_branch && !thread->xfer_due) {
		r = memtrace_thread_write_pair(thread);
		if (r < 0)
			return r;
	}

	r = memtrace_file_announce(&thread->file, run, &from);
	if (r < 0)
		return r;
	r = write_insns(thread, run, from);
	if (r < 0)
		return r;

	memtrace_thread_set_last(thread, run);
	return 0;
}

static int end_file(struct memtrace_thread *thread)
{
	int r;

	r = memtrace_out_use(&thread->file.out);
	if (r == 0)
		r = memtrace_thread_write_syscall(thread);
	/* DynamoRIO would take the next file that it reads for kernel code, too. */
	for (; r == 0 && thread->n_events > 0; thread->n_events--)
		r = memtrace_file_marker(&thread->file, MEMTRACE_HARDWARE_RETURN,
					 thread->events[0].pc, NULL);
	if (r < 0)
		return r;
	/* A branch that still waits for its outcome is left out. */
	return memtrace_file_finish(&thread->file, thread->tid);
}

int memtrace_thread_finish(struct memtrace_thread *thread)
{
	const int r = thread->started && !thread->ended ? end_file(thread) : 0;

	thread->ended = true;
	memtrace_file_forget_all(&thread->file);
	memtrace_frames_deinit(&thread->frames);
	memtrace_returns_deinit(&thread->returns);
	vec_deinit(&thread->calls.items);
	return r;
}
