/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/drmemtrace/markers.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "decoder/drmemtrace/record.h"
#include "util/message.h"

/* How old a timestamp may become within a slice, in ticks of the stream's clock (ns, as a rule). */
#define PAIR_QUANTUM 10000u

/* A sample of the kernel belongs to what the stream shows if it is at most so much later, in ns. */
#define SAMPLE_SLACK 500u

void memtrace_thread_set_now(struct memtrace_thread *thread, uint64_t t)
{
	/* Runs before the first packet with a time have no time of their own. */
	thread->now = t > thread->t0 ? t : thread->t0;
}

int memtrace_thread_write_pair(struct memtrace_thread *thread)
{
	thread->pair_due = false;
	thread->paired_at = thread->now;
	thread->pair_age = PAIR_QUANTUM;
	return memtrace_file_pair(&thread->file, thread->now, thread->cpu);
}

bool memtrace_thread_is_pair_due(const struct memtrace_thread *thread)
{
	return thread->pair_due || (thread->now > thread->paired_at &&
				    thread->now - thread->paired_at >= thread->pair_age);
}

static uint64_t file_type(const struct memtrace_directory *directory)
{
	const uint64_t type =
	    directory->whole_system ? MEMTRACE_FILETYPE_WHOLE_SYSTEM : MEMTRACE_FILETYPE_USER;

	return (type & ~(uint64_t)(directory->operands ? MEMTRACE_FILETYPE_INSNS_ONLY : 0)) |
	       (directory->kernel.has_syscalls ? MEMTRACE_FILETYPE_SYSCALLS : 0) |
	       (directory->by_cores ? MEMTRACE_FILETYPE_CORES : 0);
}

/* Create the file, with its first timestamp and its first window, which is 0: DynamoRIO refuses a
 * file of several windows that begins with another. It stands here, and not only where a second one
 * follows, since on a core to which the thread has moved meanwhile that would be the first. */
static int start(struct memtrace_thread *thread)
{
	const bool by_cores = thread->directory->by_cores;
	_cleanup_(freep) char *stem =
	    by_cores ? message_text("trace/drmemtrace.core.%06" PRIu32, thread->cpu)
		     : message_text("trace/drmemtrace.%s.%" PRIu64, thread->comm, thread->tid);
	int r;

	if (!stem)
		return -ENOMEM;
	r = memtrace_file_create(&thread->file, &thread->directory->pool, &thread->directory->clock,
				 by_cores ? NULL : &thread->directory->schedule,
				 thread->directory->operands, stem, file_type(thread->directory),
				 thread->pid, thread->tid);
	if (r < 0)
		return r;
	thread->started = true;
	thread->gap = false; /* there is nothing before it */
	r = memtrace_thread_write_pair(thread);
	return r < 0 ? r : memtrace_file_window(&thread->file);
}

uint64_t memtrace_thread_entered_until(const struct memtrace_thread *thread)
{
	return thread->left && thread->now > thread->left_at ? thread->now + SAMPLE_SLACK
							     : UINT64_MAX;
}

int memtrace_thread_write_syscall(struct memtrace_thread *thread)
{
	const uint64_t now = thread->now;
	uint64_t number;
	int r;

	if (!thread->call_due)
		return 0;
	thread->call_due = false;
	number = memtrace_kernel_syscall(thread->kernel, thread->left_at,
					 memtrace_thread_entered_until(thread), &thread->now);
	r = memtrace_thread_write_pair(thread);
	thread->now = now;
	thread->pair_due = true;
	return r < 0 ? r : memtrace_file_marker(&thread->file, MEMTRACE_SYSCALL, number, NULL);
}

/*
 * Write the window that is due; it replaces a marker 1 that is due. A timestamp is written before
 * the window, where viewers expect it, unless it would follow a branch: that is illegal even at a
 * window.
 */
static int window(struct memtrace_thread *thread)
{
	int r;

	r = memtrace_thread_write_syscall(thread);
	if (r < 0)
		return r;
	if (thread->xfer_due) {
		thread->xfer_due = false;
		memtrace_frames_restore(&thread->frames, thread->xfer_n_frames);
	}
	if (!thread->after_branch) {
		r = memtrace_thread_write_pair(thread);
		if (r < 0)
			return r;
	} else {
		thread->pair_due = true;
	}
	thread->gap = false;
	return memtrace_file_window(&thread->file);
}

int memtrace_thread_make_ready(struct memtrace_thread *thread)
{
	int r;

	if (!thread->started) {
		r = start(thread);
		if (r < 0)
			return r;
	}
	return thread->gap ? window(thread) : 0;
}

int memtrace_thread_write_xfer(struct memtrace_thread *thread)
{
	int r;

	if (!thread->xfer_due)
		return 0;
	thread->xfer_due = false;
	r = memtrace_thread_write_pair(thread);
	if (r < 0)
		return r;
	return memtrace_file_marker(&thread->file, MEMTRACE_KERNEL_XFER, thread->xfer_pc, NULL);
}

int memtrace_thread_write_calls(struct memtrace_thread *thread)
{
	uint64_t address;
	int r = 0;

	if (!thread->after_branch)
		return 0;
	for (size_t i = 0; r == 0 && i < thread->calls.items.n; i++) {
		const struct memtrace_call *call = &thread->calls.items.items[i];

		thread->calls_lost |= !memtrace_returns_top(&thread->returns, &address);
		if (thread->calls_lost)
			break;
		r = memtrace_file_marker(&thread->file, MEMTRACE_FUNCTION, call->function, NULL);
		if (r == 0)
			r = memtrace_file_marker(&thread->file,
						 call->is_enter ? MEMTRACE_RETURN_ADDRESS
								: MEMTRACE_RETURN_VALUE,
						 call->is_enter ? address : 0, NULL);
	}
	thread->calls.items.n = 0;
	return r;
}

int memtrace_thread_note_return(struct memtrace_thread *thread, const struct memtrace_insn *insn)
{
	if (!thread->directory->marks_calls)
		return 0;
	switch (memtrace_insn_type(insn->block, insn->index)) {
	case MEMTRACE_DIRECT_CALL:
	case MEMTRACE_INDIRECT_CALL:
		return memtrace_returns_push(&thread->returns, memtrace_insn_next(insn));
	case MEMTRACE_RETURN:
		memtrace_returns_pop(&thread->returns);
		return 0;
	default:
		return 0;
	}
}

void memtrace_thread_drop_branch(struct memtrace_thread *thread)
{
	if (!thread->pending)
		return;
	thread->pending = false;
	memtrace_file_forget(&thread->file); /* its bytes may count as announced */
}

int memtrace_thread_write_branch(struct memtrace_thread *thread, uint64_t target)
{
	const struct memtrace_insn *last = &thread->last;
	bool possible;
	int r;

	if (memtrace_insn_class(last) == PTD_INSN_JUMP_COND)
		possible =
		    target == memtrace_insn_target(last) || target == memtrace_insn_next(last);
	else
		possible = target != 0; /* the format knows no jump to 0 */
	if (!possible) {
		memtrace_thread_drop_branch(thread);
		thread->gap = true;
		return 0;
	}
	thread->pending = false;
	r = memtrace_thread_write_xfer(thread);
	if (r < 0)
		return r;
	thread->after_branch = true;
	r = memtrace_file_branch(&thread->file, last, thread->pending_bytes, target);
	return r < 0 ? r : memtrace_thread_note_return(thread, last);
}

bool memtrace_thread_is_numbered(const struct memtrace_thread *thread)
{
	return thread->directory->kernel.has_syscalls && memtrace_insn_is_call(&thread->last);
}

void memtrace_thread_set_last(struct memtrace_thread *thread, const struct ptd_run *run)
{
	const size_t last = (size_t)run->first + run->n - 1;

	if (last == 0) {
		thread->has_before = thread->has_last;
		thread->before = thread->last;
	}
	thread->last = (struct memtrace_insn){ run->block, run->base, last };
	thread->has_last = true;
	thread->after = MEMTRACE_AFTER_INSN;
	thread->call_due = memtrace_thread_is_numbered(thread);
	thread->left = false;
	thread->left_at = thread->now;
}
