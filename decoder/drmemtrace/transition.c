/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/drmemtrace/transition.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "decoder/drmemtrace/markers.h"
#include "decoder/drmemtrace/record.h"
#include "ptd/decode.h"

#define INSN_SIZE_MAX   15
#define NO_NUMBER       UINT32_MAX
#define NR_RT_SIGRETURN 15u
#define NR_EXECVE       59u
#define NR_EXECVEAT     322u

int memtrace_thread_follow(struct memtrace_thread *thread, uint64_t ip)
{
	const struct memtrace_insn *last = &thread->last;

	if (thread->pending)
		return memtrace_thread_write_branch(thread, ip);
	if (ip != (memtrace_insn_branches(memtrace_insn_class(last)) ? memtrace_insn_target(last)
								     : memtrace_insn_next(last)))
		thread->gap = true;
	return 0;
}

/* Write which signal the thread took, if that is known. Its handler is at @handler. */
static int write_signal(struct memtrace_thread *thread, uint64_t handler)
{
	const uint64_t signal = memtrace_kernel_signal(
	    thread->kernel, thread->left_at, memtrace_thread_entered_until(thread), handler);

	return signal ? memtrace_file_marker(&thread->file, MEMTRACE_SIGNAL_NUMBER, signal, NULL)
		      : 0;
}

/* A signal, whose handler is at @handler, interrupted at @pc, or at @restarted. */
static int enter_handler(struct memtrace_thread *thread, uint64_t handler, uint64_t pc,
			 uint64_t restarted)
{
	struct memtrace_frame frame = { .pc = pc, .restarted = restarted };
	int r;

	r = memtrace_thread_make_ready(thread);
	if (r < 0)
		return r;
	r = memtrace_thread_write_xfer(thread);
	if (r == 0)
		r = memtrace_thread_write_calls(thread);
	if (r == 0)
		r = memtrace_file_marker(&thread->file, MEMTRACE_KERNEL_EVENT, pc, &frame.marker);
	if (r == 0 && restarted != pc)
		r = memtrace_out_watch(&thread->file.out, frame.marker);
	if (r == 0)
		r = write_signal(thread, handler);
	if (r == 0 && thread->directory->marks_calls)
		r = memtrace_returns_push(&thread->returns, 0);
	if (r < 0)
		return r;
	thread->after_branch = false; /* the one place where a timestamp may follow a branch */
	r = memtrace_thread_write_pair(thread);
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

/*
 * The system call was restarted: correct the markers of all handlers that ran before that.
 *
 * Return: 0; -ENOENT if a marker cannot be changed any more; or another negative errno.
 */
static int correct_markers(struct memtrace_thread *thread)
{
	struct memtrace_frame *frame = memtrace_frames_top(&thread->frames);
	size_t n = thread->frames.stack.n;
	int r;

	do {
		r = memtrace_file_patch(&thread->file, frame->marker, MEMTRACE_KERNEL_EVENT,
					frame->restarted);
		if (r < 0)
			return r;
		frame->pc = frame->restarted;
		frame--;
	} while (--n > 0 && frame->closed);
	return 0;
}

/* The handler returns: its marker, and those of closed frames below it, stay as they are. */
static int pop_frame(struct memtrace_thread *thread)
{
	const struct memtrace_frame *top;

	memtrace_frames_pop(&thread->frames);
	top = memtrace_frames_top(&thread->frames);
	return memtrace_out_settle(&thread->file.out, top ? top->marker + 1 : 0);
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
			if (r == -ENOENT) {
				thread->gap = true;
				return 0;
			}
			if (r < 0)
				return r;
		}
		want_xfer(thread, n_frames);
		return pop_frame(thread);
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
	return enter_handler(thread, ip, frame.pc, frame.restarted);
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
	return enter_handler(thread, ip, next, pc);
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
	       thread->async_ip - MEMTRACE_VSYSCALL < MEMTRACE_VSYSCALL_SIZE;
}

/*
 * Read the code at thread->async_ip, which is as far from the last instruction in their file as in
 * memory, if both are of one file. Return: whether it is an int3, int1 or int n; then it is
 * thread->interrupt.
 */
static bool read_interrupt(struct memtrace_thread *thread)
{
	const struct ptd_block *near = thread->last.block;
	const struct ptd_decoder *decoder = thread->directory->decoder;
	uint8_t *bytes = thread->interrupt.bytes;
	size_t n;

	if (!decoder || near->mode != 64)
		return false;
	thread->has_trap = false;
	n = ptd_decoder_code(decoder, near->object,
			     near->address + (thread->async_ip - thread->last.base), bytes, 2);
	if (n == 0 || (bytes[0] != 0xcc && bytes[0] != 0xf1 && (bytes[0] != 0xcd || n < 2)))
		return false;
	thread->interrupt.insn =
	    (struct ptd_insn){ .size = bytes[0] == 0xcd ? 2 : 1,
			       .iclass = PTD_INSN_INTERRUPT,
			       .symbol = near->insns[thread->last.index].symbol };
	thread->interrupt.block = (struct ptd_block){ .n_insns = 1,
						      .size = thread->interrupt.insn.size,
						      .mode = 64,
						      .object = near->object,
						      .bytes = bytes,
						      .insns = &thread->interrupt.insn };
	return true;
}

/*
 * Return: whether it was an int3 or int n at which the thread was interrupted, @ret_insn, which the
 *         packets do not report. It is taken to be in the function of the last instruction.
 */
static bool find_interrupt(struct memtrace_thread *thread, struct memtrace_insn *ret_insn)
{
	const struct memtrace_insn *last = &thread->last;
	const struct ptd_insn *insns;

	if (!thread->has_last || thread->gap)
		return false;
	if (thread->has_trap && memtrace_insn_pc(&thread->trap) == thread->async_ip) {
		thread->has_trap = false;
		*ret_insn = thread->trap;
		return true;
	}
	insns = last->block->insns;
	*ret_insn = (struct memtrace_insn){ last->block, last->base, last->index + 1 };
	if (ret_insn->index < last->block->n_insns &&
	    memtrace_insn_pc(ret_insn) == thread->async_ip)
		return memtrace_insn_class(ret_insn) == PTD_INSN_INTERRUPT &&
		       insns[ret_insn->index].symbol == insns[last->index].symbol;
	*ret_insn = (struct memtrace_insn){ &thread->interrupt.block, thread->async_ip, 0 };
	return read_interrupt(thread);
}

/* Write @insn, behind the last instruction. */
static int write_interrupt(struct memtrace_thread *thread, const struct memtrace_insn *insn)
{
	int r = memtrace_thread_write_xfer(thread);

	thread->last = *insn;
	thread->after_branch = false;
	if (r == 0)
		r = memtrace_file_insns(&thread->file, insn->block, insn->base, insn->index,
					insn->index + 1, insn->index);
	thread->call_due = memtrace_thread_is_numbered(thread);
	return r < 0 ? r : memtrace_thread_write_syscall(thread);
}

/*
 * Return: whether a signal came before the int3 or int n at which the thread was interrupted, and
 *         took it to its handler at @ip: the recording says which signal it was, and it is neither
 *         of those that the instruction raises.
 */
static bool comes_before_interrupt(const struct memtrace_thread *thread, uint64_t ip)
{
	const uint64_t signal = memtrace_kernel_next_signal(
	    thread->kernel, thread->left_at, memtrace_thread_entered_until(thread), ip);

	return signal != 0 && signal != SIGTRAP && signal != SIGSEGV;
}

/*
 * Control came to @ip from where it was interrupted. If that was an int3, it has run, for its
 * handler returns behind it; should another signal have come just before it, it is written before
 * that signal's handler, unless the recording says which signals the thread took.
 */
static int return_from_async(struct memtrace_thread *thread, uint64_t ip)
{
	uint64_t pc = thread->async_ip;
	struct memtrace_insn insn;
	int r;

	if (ip == pc)
		return 0;
	if (!thread->space_changed && find_interrupt(thread, &insn)) {
		if (comes_before_interrupt(thread, ip)) {
			thread->trap = insn;
			thread->has_trap = true;
			return enter_handler(thread, ip, pc, pc);
		}
		r = write_interrupt(thread, &insn);
		pc = memtrace_insn_next(&insn);
		return r < 0 || ip == pc ? r : enter_handler(thread, ip, pc, pc);
	}
	if (is_hole(thread, ip)) {
		thread->gap = true;
		return 0;
	}
	return enter_handler(thread, ip, pc, pc);
}

int memtrace_thread_arrive_in_program(struct memtrace_thread *thread, uint64_t ip)
{
	switch (thread->after) {
	case MEMTRACE_AFTER_INSN:
		return memtrace_thread_follow(thread, ip);
	case MEMTRACE_AFTER_SYSCALL:
		return return_from_syscall(thread, ip);
	case MEMTRACE_AFTER_ASYNC:
		return return_from_async(thread, ip);
	case MEMTRACE_AFTER_NOTHING:
		break;
	}
	return 0;
}

void memtrace_thread_leave_by_insn(struct memtrace_thread *thread)
{
	if (thread->after != MEMTRACE_AFTER_INSN)
		return;

	switch (memtrace_insn_class(&thread->last)) {
	case PTD_INSN_SYSCALL:
	case PTD_INSN_SYSENTER:
	case PTD_INSN_INTERRUPT:
	case PTD_INSN_VM:
		thread->after = MEMTRACE_AFTER_SYSCALL;
		thread->pair_age = MEMTRACE_PAIR_EVENT;
		break;
	default:
		/* A branch to code that is not traced: what follows came from there. */
		memtrace_thread_drop_branch(thread);
		thread->after = MEMTRACE_AFTER_NOTHING;
		thread->has_last = false;
		thread->gap = true;
	}
}
