/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/sink/memtrace_flow.h"

#include <string.h>

#include "decoder/sink/memtrace_record.h"
#include "decoder/sink/memtrace_thread.h"

#define INSN_SIZE_MAX   15
#define NO_NUMBER       UINT32_MAX
#define NR_RT_SIGRETURN 15u
#define NR_EXECVE       59u
#define NR_EXECVEAT     322u
#define VSYSCALL_PAGE   UINT64_C(0xffffffffff600000)
#define VSYSCALL_SIZE   0x1000u

void memtrace_flow_drop(struct memtrace_thread *thread)
{
	if (!thread->pending)
		return;
	thread->pending = false;
	memtrace_file_forget(&thread->file); /* its bytes may count as announced */
}

int memtrace_flow_xfer(struct memtrace_thread *thread)
{
	int r;

	if (!thread->xfer_due)
		return 0;
	thread->xfer_due = false;
	r = memtrace_thread_pair(thread);
	if (r < 0)
		return r;
	return memtrace_file_marker(&thread->file, MEMTRACE_KERNEL_XFER, thread->xfer_pc, NULL);
}

int memtrace_flow_settle(struct memtrace_thread *thread, uint64_t target)
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
		memtrace_flow_drop(thread);
		thread->gap = true;
		return 0;
	}
	thread->pending = false;
	r = memtrace_flow_xfer(thread);
	if (r < 0)
		return r;
	thread->after_branch = true;
	return memtrace_file_branch(&thread->file, last, thread->pending_bytes, target);
}

/* Control came to @ip from the last instruction. */
static int follow(struct memtrace_thread *thread, uint64_t ip)
{
	const struct memtrace_insn *last = &thread->last;

	if (thread->pending)
		return memtrace_flow_settle(thread, ip);
	if (ip != (memtrace_insn_branches(memtrace_insn_class(last)) ? memtrace_insn_target(last)
								     : memtrace_insn_next(last)))
		thread->gap = true;
	return 0;
}

/* A signal interrupted at @pc, or at @restarted. */
static int enter_handler(struct memtrace_thread *thread, uint64_t pc, uint64_t restarted)
{
	struct memtrace_frame frame = { .pc = pc, .restarted = restarted };
	int r;

	r = memtrace_thread_ready(thread);
	if (r < 0)
		return r;
	r = memtrace_flow_xfer(thread);
	if (r < 0)
		return r;
	r = memtrace_file_marker(&thread->file, MEMTRACE_KERNEL_EVENT, pc, &frame.marker);
	if (r < 0)
		return r;
	thread->after_branch = false; /* the one place where a timestamp may follow a branch */
	r = memtrace_thread_pair(thread);
	if (r < 0)
		return r;
	return memtrace_frames_push(&thread->frames, &frame);
}

/* Marker 1 is due now. Before it, the reader's stack had @n_frames frames. */
static void want_xfer(struct memtrace_thread *thread, size_t n_frames)
{
	thread->xfer_due = true;
	thread->xfer_pc = memtrace_insn_next(&thread->last);
	thread->xfer_n_frames = n_frames;
}

/*
 * A system call ended at another address, which is not the code that a handler interrupted. Marker
 * 1 says so; but a reader that has an open handler takes the marker for that handler's return.
 */
static void land_elsewhere(struct memtrace_thread *thread)
{
	if (memtrace_frames_empty(&thread->frames))
		want_xfer(thread, 0);
	else
		thread->gap = true;
}

/* The system call was restarted: correct the markers of all handlers that ran before that. */
static int correct_markers(struct memtrace_thread *thread)
{
	struct memtrace_frame *frame = memtrace_frames_top(&thread->frames);
	size_t n = thread->frames.stack.n;
	int r;

	do {
		r = memtrace_file_patch(&thread->file, frame->marker, frame->restarted);
		if (r < 0)
			return r;
		frame->pc = frame->restarted;
		frame--;
	} while (--n > 0 && frame->closed);
	return 0;
}

/* Did control go on a little behind @pc? Then an instruction there was skipped, or not reported. */
static bool skips(uint64_t pc, uint64_t ip)
{
	return ip - pc - 1 < INSN_SIZE_MAX;
}

static int return_from_handler(struct memtrace_thread *thread, uint64_t ip)
{
	struct memtrace_frame *top = memtrace_frames_top(&thread->frames);
	const size_t n_frames = thread->frames.stack.n;
	struct memtrace_frame frame;
	int r;

	if (!top) {
		land_elsewhere(thread);
		return 0;
	}

	if (ip == top->pc || ip == top->restarted) {
		if (ip != top->pc) {
			r = correct_markers(thread);
			if (r < 0)
				return r;
		}
		memtrace_frames_pop(&thread->frames);
		want_xfer(thread, n_frames);
		return 0;
	}

	/* Handlers in between were left by siglongjmp; the reader's stack still has them on top. */
	if (skips(top->pc, ip) || memtrace_frames_deeper(&thread->frames, ip)) {
		thread->gap = true;
		return 0;
	}

	/* The next signal was waiting: its handler runs before the interrupted code goes on. */
	frame = *top;
	if (frame.pc != frame.restarted)
		top->closed = true;
	else
		memtrace_frames_pop(&thread->frames);
	want_xfer(thread, n_frames);
	return enter_handler(thread, frame.pc, frame.restarted);
}

/*
 * Return: the number of the system call, if the instruction before it loads that number; else
 *         NO_NUMBER.
 */
static uint32_t syscall_number(const struct memtrace_thread *thread)
{
	static const struct {
		uint8_t size;
		uint8_t opcode_size;
		uint8_t opcode[3];
	} moves[] = {
		{ 5, 1, { 0xb8 } },             /* mov $n,%eax */
		{ 6, 2, { 0xc7, 0xc0 } },       /* the same */
		{ 7, 3, { 0x48, 0xc7, 0xc0 } }, /* mov $n,%rax */
	};
	struct memtrace_insn insn = thread->last;
	const struct ptd_insn *i;
	uint32_t number;

	if (insn.index > 0)
		insn.index--;
	else if (thread->has_before &&
		 memtrace_insn_next(&thread->before) == memtrace_insn_pc(&insn))
		insn = thread->before;
	else
		return NO_NUMBER;

	i = &insn.block->insns[insn.index];
	for (size_t k = 0; k < ARRAY_LEN(moves); k++) {
		const uint8_t *bytes = insn.block->bytes + i->offset;

		if (i->size != moves[k].size ||
		    memcmp(bytes, moves[k].opcode, moves[k].opcode_size) != 0)
			continue;
		memcpy(&number, bytes + moves[k].opcode_size, sizeof(number));
		return number;
	}
	return NO_NUMBER;
}

/* Control came to @ip from a system call. */
static int return_from_syscall(struct memtrace_thread *thread, uint64_t ip)
{
	const uint64_t pc = memtrace_insn_pc(&thread->last);
	const uint64_t next = memtrace_insn_next(&thread->last);
	const uint32_t number = syscall_number(thread);

	if (ip == next)
		return 0;
	if (memtrace_insn_class(&thread->last) == PTD_INSN_VM || next == 0) {
		thread->gap = true;
		return 0;
	}
	/* A call that is restarted without a handler returns to itself, and sysenter anywhere. */
	if (thread->space_changed || number == NR_EXECVE || number == NR_EXECVEAT || ip == pc ||
	    memtrace_insn_class(&thread->last) == PTD_INSN_SYSENTER) {
		land_elsewhere(thread);
		return 0;
	}
	if (number == NR_RT_SIGRETURN)
		return return_from_handler(thread, ip);
	return enter_handler(thread, next, pc);
}

/*
 * Return: whether control came to @ip by something other than a signal.
 *
 * The thread goes on behind an int3 or int n, which is never reported. Code of the vsyscall page is
 * never reported either, since the kernel executes its calls itself. A new program is not a
 * handler.
 */
static bool is_hole(const struct memtrace_thread *thread, uint64_t ip)
{
	return skips(thread->async_ip, ip) || thread->space_changed ||
	       thread->async_ip - VSYSCALL_PAGE < VSYSCALL_SIZE;
}

/* Control came to @ip from where it was interrupted. */
static int return_from_async(struct memtrace_thread *thread, uint64_t ip)
{
	if (ip == thread->async_ip)
		return 0;
	if (is_hole(thread, ip)) {
		thread->gap = true;
		return 0;
	}
	return enter_handler(thread, thread->async_ip, thread->async_ip);
}

int memtrace_flow_arrive(struct memtrace_thread *thread, uint64_t ip)
{
	switch (thread->after) {
	case MEMTRACE_AFTER_INSN:
		return follow(thread, ip);
	case MEMTRACE_AFTER_SYSCALL:
		return return_from_syscall(thread, ip);
	case MEMTRACE_AFTER_ASYNC:
		return return_from_async(thread, ip);
	case MEMTRACE_AFTER_NOTHING:
		break;
	}
	return 0;
}
