/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/drmemtrace/thread.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "decoder/drmemtrace/markers.h"
#include "decoder/drmemtrace/record.h"
#include "decoder/drmemtrace/transition.h"

/* --- memtrace events -------------------------------------------------------------------------- */

/*
 * With the kernel's code: where the program or the kernel is interrupted, and where it goes on
 * (markers 43 and 44).
 */

/* Write marker 43: the thread would have gone on at @pc, and is interrupted. */
static int begin_event(struct memtrace_thread *thread, uint64_t pc, bool is_unknown)
{
	struct memtrace_event event = { .pc = pc, .is_unknown = is_unknown };
	int r;

	if (thread->n_events == MEMTRACE_EVENTS_MAX) {
		thread->gap = true;
		return 0;
	}
	r = memtrace_thread_make_ready(thread);
	if (r == 0)
		r = memtrace_thread_write_calls(thread);
	if (r == 0)
		r = memtrace_file_marker(&thread->file, MEMTRACE_HARDWARE_EVENT, pc, &event.marker);
	if (r == 0 && is_unknown)
		r = memtrace_out_watch(&thread->file.out, event.marker);
	if (r == 0 && thread->directory->marks_calls)
		r = memtrace_returns_push(&thread->returns, 0);
	if (r == 0)
		thread->events[thread->n_events++] = event;
	return r;
}

/* The kernel ran first: the marker 43 that stands before it is given the value @ip. */
static int correct_event(struct memtrace_thread *thread, struct memtrace_event *event, uint64_t ip)
{
	int r = memtrace_file_patch(&thread->file, event->marker, MEMTRACE_HARDWARE_EVENT, ip);

	if (r == -ENOENT) /* too late: marker 1 will say where the thread goes on */
		return 0;
	if (r == 0)
		r = memtrace_out_settle(&thread->file.out, event->marker);
	if (r == 0)
		event->pc = ip;
	return r;
}

/* Write markers 44 for the open events but the first @n. */
static int close_events(struct memtrace_thread *thread, size_t n)
{
	int r = 0;

	for (; r == 0 && thread->n_events > n; thread->n_events--) {
		const struct memtrace_event *event = &thread->events[thread->n_events - 1];

		r = memtrace_file_marker(
		    &thread->file, MEMTRACE_HARDWARE_RETURN,
		    thread->has_last ? memtrace_insn_pc(&thread->last) : event->pc, NULL);
	}
	return r;
}

/* The kernel's code goes on at @ip behind a far return: the events that return there end. */
static int return_in_kernel(struct memtrace_thread *thread, uint64_t ip)
{
	size_t n = thread->n_events;
	int r;

	while (n > 0 && thread->events[n - 1].pc != ip)
		n--;
	if (n == 0)
		return 0;
	r = memtrace_thread_write_calls(thread);
	return r < 0 ? r : close_events(thread, n - 1);
}

/*
 * Control is at @ip of the program, so all events are over. If they interrupted the program
 * elsewhere, it goes on in a signal's handler or in what that interrupted, or is another program:
 * then marker 1 follows, or readers would expect the code that was interrupted.
 */
static int return_to_program(struct memtrace_thread *thread, uint64_t ip)
{
	struct memtrace_event *first = &thread->events[0];
	int r;

	r = memtrace_thread_make_ready(thread);
	if (r == 0)
		r = memtrace_thread_write_calls(thread);
	if (r == 0 && first->is_unknown)
		r = correct_event(thread, first, ip);
	if (r == 0)
		r = close_events(thread, 0);
	if (r < 0 || first->pc == ip)
		return r;
	return memtrace_file_marker(&thread->file, MEMTRACE_KERNEL_XFER, first->pc, NULL);
}

/* Control came to @ip, of the program or of the kernel, whose code begins with a marker 43. */
static int follow_in_system(struct memtrace_thread *thread, uint64_t ip, bool is_kernel)
{
	uint64_t pc;

	switch (thread->after) {
	case MEMTRACE_AFTER_INSN:
		return memtrace_thread_follow(thread, ip);
	case MEMTRACE_AFTER_SYSCALL:
		pc = memtrace_insn_next(&thread->last);
		break;
	case MEMTRACE_AFTER_ASYNC:
		pc = thread->async_ip;
		break;
	default:
		return is_kernel && thread->n_events == 0 ? begin_event(thread, ip, true) : 0;
	}
	if (is_kernel && ip != pc)
		return begin_event(thread, pc, false);
	thread->gap |= ip != pc;
	return 0;
}

/* Control is at @ip, of the program or of the kernel. */
static int memtrace_thread_arrive_in_system(struct memtrace_thread *thread, uint64_t ip)
{
	const bool is_kernel = memtrace_is_kernel(ip);
	bool returns;
	int r;

	if (is_kernel && thread->after == MEMTRACE_AFTER_INSN &&
	    !memtrace_is_kernel(memtrace_insn_pc(&thread->last)))
		memtrace_thread_leave_by_insn(thread);
	returns = thread->after == MEMTRACE_AFTER_INSN &&
		  memtrace_insn_class(&thread->last) == PTD_INSN_RETURN_FAR;
	r = follow_in_system(thread, ip, is_kernel);
	if (r < 0 || thread->n_events == 0)
		return r;
	if (!is_kernel)
		return return_to_program(thread, ip);
	return returns && !thread->gap ? return_in_kernel(thread, ip) : 0;
}

/* --- memtrace thread -------------------------------------------------------------------------- */

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
	vec_deinit(&thread->returns.addresses);
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
			r = memtrace_out_settle(&thread->file.out, 0);
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
		r = memtrace_tables_add(&thread->directory->tables, batch, run, thread->pid);
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
	vec_deinit(&thread->returns.addresses);
	vec_deinit(&thread->calls.items);
	return r;
}

/* --- memtrace frames -------------------------------------------------------------------------- */

int memtrace_returns_push(struct memtrace_returns *returns, uint64_t address)
{
	uint64_t *items = returns->addresses.items;

	if (returns->addresses.n == MEMTRACE_RETURNS_MAX) {
		returns->addresses.n /= 2;
		memcpy(items, items + returns->addresses.n, returns->addresses.n * sizeof(*items));
		returns->is_cut = true;
	}
	return vec_push(&returns->addresses, address);
}

void memtrace_returns_pop(struct memtrace_returns *returns)
{
	if (returns->addresses.n > 0)
		returns->addresses.n--;
}

bool memtrace_returns_top(const struct memtrace_returns *returns, uint64_t *ret_address)
{
	const size_t n = returns->addresses.n;

	*ret_address = n > 0 ? returns->addresses.items[n - 1] : 0;
	return n > 0 || !returns->is_cut;
}

void memtrace_frames_deinit(struct memtrace_frames *frames)
{
	vec_deinit(&frames->stack);
}

int memtrace_frames_push(struct memtrace_frames *frames, const struct memtrace_frame *frame)
{
	struct memtrace_frame *items = frames->stack.items;

	if (frames->stack.n == MEMTRACE_FRAMES_MAX) {
		frames->cut |= !items[0].closed;
		memmove(items, items + 1, (MEMTRACE_FRAMES_MAX - 1) * sizeof(*items));
		frames->stack.n--;
	}
	return vec_push(&frames->stack, *frame);
}

struct memtrace_frame *memtrace_frames_top(const struct memtrace_frames *frames)
{
	return frames->stack.n ? &frames->stack.items[frames->stack.n - 1] : NULL;
}

bool memtrace_frames_empty(const struct memtrace_frames *frames)
{
	return !frames->stack.n && !frames->cut;
}

bool memtrace_frames_deeper(const struct memtrace_frames *frames, uint64_t pc)
{
	for (size_t i = 0; i + 1 < frames->stack.n; i++) {
		const struct memtrace_frame *frame = &frames->stack.items[i];

		if (!frame->closed && (frame->pc == pc || frame->restarted == pc))
			return true;
	}
	return false;
}

void memtrace_frames_pop(struct memtrace_frames *frames)
{
	assert(frames->stack.n > 0);

	/* Closed frames wait for the open one above them. */
	do
		frames->stack.n--;
	while (frames->stack.n > 0 && frames->stack.items[frames->stack.n - 1].closed);
}

void memtrace_frames_restore(struct memtrace_frames *frames, size_t n)
{
	assert(n >= frames->stack.n && n <= frames->stack.n_capacity);

	frames->stack.n = n;
}
