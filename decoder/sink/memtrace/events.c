/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/sink/memtrace/events.h"

#include <errno.h>

#include "decoder/sink/memtrace/markers.h"
#include "decoder/sink/memtrace/record.h"
#include "decoder/sink/memtrace/transition.h"

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
		r = memtrace_file_watch(&thread->file, event.marker);
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
		r = memtrace_file_settle(&thread->file, event->marker);
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

int memtrace_thread_arrive_in_system(struct memtrace_thread *thread, uint64_t ip)
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
