/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/sink/memtrace/thread.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "decoder/sink/memtrace/record.h"
#include "ptd/decode.h"

/*
 * How old a timestamp may become, in ticks of the stream's clock (ns, as a rule): within a slice;
 * and after an event, at which the kernel may have run for long.
 */
#define PAIR_QUANTUM 10000u
#define PAIR_EVENT   1000u

/* A sample of the kernel belongs to what the stream shows if it is at most so much later, in ns. */
#define SAMPLE_SLACK 500u

#define INSN_SIZE_MAX   15
#define NO_NUMBER       UINT32_MAX
#define NR_RT_SIGRETURN 15u
#define NR_EXECVE       59u
#define NR_EXECVEAT     322u

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

static void set_now(struct memtrace_thread *thread, uint64_t t)
{
	/* Runs before the first packet with a time have no time of their own. */
	thread->now = t > thread->t0 ? t : thread->t0;
}

/* Write the timestamp and the CPU of the next record. */
static int write_pair(struct memtrace_thread *thread)
{
	thread->pair_due = false;
	thread->paired_at = thread->now;
	thread->pair_age = PAIR_QUANTUM;
	return memtrace_file_pair(&thread->file, thread->now, thread->cpu);
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
 * file of several windows that begins with another. */
static int start(struct memtrace_thread *thread)
{
	const bool by_cores = thread->directory->by_cores;
	_cleanup_(freep) char *stem = NULL;
	int r;

	if (by_cores)
		r = asprintf(&stem, "trace/drmemtrace.core.%06" PRIu32, thread->cpu);
	else
		r = asprintf(&stem, "trace/drmemtrace.%s.%" PRIu64, thread->comm, thread->tid);
	if (r < 0) {
		stem = NULL;
		return -ENOMEM;
	}
	r = memtrace_file_create(&thread->file, &thread->directory->pool, &thread->directory->clock,
				 by_cores ? NULL : &thread->directory->schedule,
				 thread->directory->operands, stem, file_type(thread->directory),
				 thread->pid, thread->tid);
	if (r < 0)
		return r;
	thread->started = true;
	thread->gap = false; /* there is nothing before it */
	r = write_pair(thread);
	return r < 0 ? r : memtrace_file_window(&thread->file);
}

/*
 * Return: the time before which the kernel was entered, if the thread has come back from it: the
 *         stream's time may be much older than that, unless it went on meanwhile.
 */
static uint64_t entered_until(const struct memtrace_thread *thread)
{
	return thread->left && thread->now > thread->left_at ? thread->now + SAMPLE_SLACK
							     : UINT64_MAX;
}

/* Write marker 25 if it is due: the last record is a system call. The thread has gone on at
 * thread->now, or ends. */
static int write_syscall(struct memtrace_thread *thread)
{
	const uint64_t now = thread->now;
	uint64_t number;
	int r;

	if (!thread->call_due)
		return 0;
	thread->call_due = false;
	number = memtrace_kernel_syscall(thread->kernel, thread->left_at, entered_until(thread),
					 &thread->now);
	r = write_pair(thread);
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

	r = write_syscall(thread);
	if (r < 0)
		return r;
	if (thread->xfer_due) {
		thread->xfer_due = false;
		memtrace_frames_restore(&thread->frames, thread->xfer_n_frames);
	}
	if (!thread->after_branch) {
		r = write_pair(thread);
		if (r < 0)
			return r;
	} else {
		thread->pair_due = true;
	}
	thread->gap = false;
	return memtrace_file_window(&thread->file);
}

/* Write what must stand before the next record: the start of the file, or a window that is due. */
static int make_ready(struct memtrace_thread *thread)
{
	int r;

	if (!thread->started) {
		r = start(thread);
		if (r < 0)
			return r;
	}
	return thread->gap ? window(thread) : 0;
}

/*
 * --- transitions ------------------------------------------------------------------------------
 *
 * How control came from one instruction to the next: it fell through, it followed a branch, it came
 * out of a system call, or a signal diverted it, which the stream shows only by the address at
 * which the thread went on. If no marker explains a transition, thread->gap is set, so that a new
 * window is written.
 */

/* If a branch waits for its outcome, leave it out. */
static void drop_branch(struct memtrace_thread *thread)
{
	if (!thread->pending)
		return;
	thread->pending = false;
	memtrace_file_forget(&thread->file); /* its bytes may count as announced */
}

/*
 * Write the markers of functions that were entered or left, if the last record is a branch. Should
 * the return address that a marker must have be unknown, no more functions are marked.
 */
static int write_calls(struct memtrace_thread *thread)
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

/* The record of @insn was written, a call or a return as a rule. Return: 0 or -ENOMEM. */
static int note_return(struct memtrace_thread *thread, const struct memtrace_insn *insn)
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

/* Write marker 1 (struct memtrace_frames) if it is due. */
static int write_xfer(struct memtrace_thread *thread)
{
	int r;

	if (!thread->xfer_due)
		return 0;
	thread->xfer_due = false;
	r = write_pair(thread);
	if (r < 0)
		return r;
	return memtrace_file_marker(&thread->file, MEMTRACE_KERNEL_XFER, thread->xfer_pc, NULL);
}

/* Write the branch that waits for its outcome: it went to @target. If it cannot go there, it is
 * left out, and a new window is due. */
static int write_branch(struct memtrace_thread *thread, uint64_t target)
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
		drop_branch(thread);
		thread->gap = true;
		return 0;
	}
	thread->pending = false;
	r = write_xfer(thread);
	if (r < 0)
		return r;
	thread->after_branch = true;
	r = memtrace_file_branch(&thread->file, last, thread->pending_bytes, target);
	return r < 0 ? r : note_return(thread, last);
}

/* Control came to @ip from the last instruction. */
static int follow(struct memtrace_thread *thread, uint64_t ip)
{
	const struct memtrace_insn *last = &thread->last;

	if (thread->pending)
		return write_branch(thread, ip);
	if (ip != (memtrace_insn_branches(memtrace_insn_class(last)) ? memtrace_insn_target(last)
								     : memtrace_insn_next(last)))
		thread->gap = true;
	return 0;
}

/* Write which signal the thread took, if that is known. Its handler is at @handler. */
static int write_signal(struct memtrace_thread *thread, uint64_t handler)
{
	const uint64_t signal =
	    memtrace_kernel_signal(thread->kernel, thread->left_at, entered_until(thread), handler);

	return signal ? memtrace_file_marker(&thread->file, MEMTRACE_SIGNAL_NUMBER, signal, NULL)
		      : 0;
}

/* A signal, whose handler is at @handler, interrupted at @pc, or at @restarted. */
static int enter_handler(struct memtrace_thread *thread, uint64_t handler, uint64_t pc,
			 uint64_t restarted)
{
	struct memtrace_frame frame = { .pc = pc, .restarted = restarted };
	int r;

	r = make_ready(thread);
	if (r < 0)
		return r;
	r = write_xfer(thread);
	if (r == 0)
		r = write_calls(thread);
	if (r == 0)
		r = memtrace_file_marker(&thread->file, MEMTRACE_KERNEL_EVENT, pc, &frame.marker);
	if (r == 0 && restarted != pc)
		r = memtrace_file_watch(&thread->file, frame.marker);
	if (r == 0)
		r = write_signal(thread, handler);
	if (r == 0 && thread->directory->marks_calls)
		r = memtrace_returns_push(&thread->returns, 0);
	if (r < 0)
		return r;
	thread->after_branch = false; /* the one place where a timestamp may follow a branch */
	r = write_pair(thread);
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
	return memtrace_file_settle(&thread->file, top ? top->marker + 1 : 0);
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

/* Return: whether the last instruction is a system call whose number has to be written. */
static bool is_numbered(const struct memtrace_thread *thread)
{
	return thread->directory->kernel.has_syscalls && memtrace_insn_is_call(&thread->last);
}

/* Write @insn, behind the last instruction. */
static int write_interrupt(struct memtrace_thread *thread, const struct memtrace_insn *insn)
{
	int r = write_xfer(thread);

	thread->last = *insn;
	thread->after_branch = false;
	if (r == 0)
		r = memtrace_file_insns(&thread->file, insn->block, insn->base, insn->index,
					insn->index + 1, insn->index);
	thread->call_due = is_numbered(thread);
	return r < 0 ? r : write_syscall(thread);
}

/*
 * Return: whether a signal came before the int3 or int n at which the thread was interrupted, and
 *         took it to its handler at @ip: the recording says which signal it was, and it is neither
 *         of those that the instruction raises.
 */
static bool comes_before_interrupt(const struct memtrace_thread *thread, uint64_t ip)
{
	const uint64_t signal =
	    memtrace_kernel_next_signal(thread->kernel, thread->left_at, entered_until(thread), ip);

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

/* Control is at @ip of the program. */
static int arrive_in_program(struct memtrace_thread *thread, uint64_t ip)
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

/* The thread left for code that is not written, by its last instruction. */
static void leave_by_insn(struct memtrace_thread *thread)
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
		drop_branch(thread);
		thread->after = MEMTRACE_AFTER_NOTHING;
		thread->has_last = false;
		thread->gap = true;
	}
}

/*
 * --- with the kernel's code --------------------------------------------------------------------
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
	r = make_ready(thread);
	if (r == 0)
		r = write_calls(thread);
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
	r = write_calls(thread);
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

	r = make_ready(thread);
	if (r == 0)
		r = write_calls(thread);
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
		return follow(thread, ip);
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
static int arrive_in_system(struct memtrace_thread *thread, uint64_t ip)
{
	const bool is_kernel = memtrace_is_kernel(ip);
	bool returns;
	int r;

	if (is_kernel && thread->after == MEMTRACE_AFTER_INSN &&
	    !memtrace_is_kernel(memtrace_insn_pc(&thread->last)))
		leave_by_insn(thread);
	returns = thread->after == MEMTRACE_AFTER_INSN &&
		  memtrace_insn_class(&thread->last) == PTD_INSN_RETURN_FAR;
	r = follow_in_system(thread, ip, is_kernel);
	if (r < 0 || thread->n_events == 0)
		return r;
	if (!is_kernel)
		return return_to_program(thread, ip);
	return returns && !thread->gap ? return_in_kernel(thread, ip) : 0;
}

/* Control is at @ip now: write the markers that explain how it came there, with the time
 * thread->now. */
static int arrive_at(struct memtrace_thread *thread, uint64_t ip)
{
	const int r = write_syscall(thread);

	if (r < 0)
		return r;
	return thread->directory->whole_system ? arrive_in_system(thread, ip)
					       : arrive_in_program(thread, ip);
}

/* --- what the stream shows -------------------------------------------------------------------- */

void memtrace_thread_skip(struct memtrace_thread *thread)
{
	drop_branch(thread);
	thread->after = MEMTRACE_AFTER_NOTHING;
	thread->has_last = false;
	thread->gap = true;
}

static int mark_gap(struct memtrace_thread *thread, const struct ptd_mark *mark)
{
	/* Where the code is missing, the address at which control arrived is still known. */
	const bool arrived = mark->reason == PTD_GAP_NO_CODE || mark->reason == PTD_GAP_NO_OBJECT ||
			     mark->reason == PTD_GAP_WRONG_OBJECT;
	int r = 0;

	thread->left = true;
	if (thread->pending && thread->after == MEMTRACE_AFTER_INSN && arrived)
		r = write_branch(thread, mark->ip);
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
	thread->pair_age = PAIR_EVENT;
	return 0;
}

void memtrace_thread_leave_out_kernel(struct memtrace_thread *thread)
{
	leave_by_insn(thread);
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
		thread->left = true;
		thread->left_at = thread->now;
		leave_by_insn(thread);
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
			r = write_syscall(thread);
		if (r == 0)
			r = memtrace_file_settle(&thread->file, 0);
	}
	if (r < 0)
		return r;
	drop_branch(thread);
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
	return r < 0 ? r : write_pair(thread);
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
		r = write_xfer(thread);
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
		r = write_pair(thread);
		if (r < 0)
			return r;
	}
	if (i < end) {
		r = memtrace_file_insns(&thread->file, run->block, run->base, i, end, from);
		if (r == 0)
			r = note_return(thread,
					&(struct memtrace_insn){ run->block, run->base, end - 1 });
		if (r < 0)
			return r;
		thread->after_branch = memtrace_insn_branches(insns[end - 1].iclass);
	}
	thread->pending = held;
	thread->pending_bytes = last >= from;
	/* An expansion goes on from here as if the branch were written. */
	return held ? memtrace_file_symbol(&thread->file, insns[last].symbol) : 0;
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
		thread->has_before = thread->has_last;
		thread->before = thread->last;
	}
	thread->last = (struct memtrace_insn){ run->block, run->base, last };
	thread->has_last = true;
	thread->after = MEMTRACE_AFTER_INSN;
	thread->call_due = is_numbered(thread);
	thread->left = false;
	thread->left_at = thread->now;
}

int memtrace_thread_run(struct memtrace_thread *thread, const struct ptd_batch *batch,
			const struct ptd_run *run)
{
	size_t from;
	int r;

	assert(run->n > 0 && run->first + run->n <= run->block->n_insns);

	set_now(thread, run->t);
	r = arrive_at(thread, ptd_run_ip(run, 0));
	if (r < 0)
		return r;
	thread->space_changed = false;

	r = write_calls(thread);
	if (r == 0)
		r = make_ready(thread);
	if (r == 0)
		r = memtrace_symbols_add(&thread->directory->symbols, batch, run);
	if (r == 0)
		r = memtrace_mappings_add(&thread->directory->mappings, thread->pid, run);
	if (r < 0)
		return r;
	thread->pair_due = is_pair_due(thread);
	if (thread->pair_due && !thread->after_branch && !thread->xfer_due) {
		r = write_pair(thread);
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

	set_now(thread, run->t);
	set_last(thread, before);
	set_last(thread, run);
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

	set_now(thread, run->t);
	return !is_pair_due(thread) && c->n_insns + c->waits + run->n <= thread->file.chunk_end &&
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
			r = note_return(thread, &thread->last);
		if (r < 0)
			return r;
		c->start += size;
		c->n_insns++;
		c->waits = false;
		thread->pending = false;
		thread->after_branch = true;
	}
	return write_calls(thread);
}

/* Note the calls and returns among the records of run @i, and of the branch before it. */
static int note_returns(struct memtrace_thread *thread, const struct copying *c, size_t i)
{
	const uint32_t flow = MEMTRACE_EXPANSION_CALLS | MEMTRACE_EXPANSION_RETURNS;
	const struct memtrace_expansion_run *e = &c->expansion->runs[i];
	const struct ptd_run *run = &c->batch->runs[i];
	int r = 0;

	if (c->waits && e[-1].what & flow)
		r = note_return(thread, &(struct memtrace_insn){ run[-1].block, run[-1].base,
								 run[-1].first + run[-1].n - 1u });
	if (r == 0 && e->what & flow && !memtrace_expansion_waits(e))
		r = note_return(thread, &(struct memtrace_insn){ run->block, run->base,
								 run->first + run->n - 1u });
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

static int end_file(struct memtrace_thread *thread)
{
	int r;

	r = memtrace_out_use(&thread->file.out);
	if (r == 0)
		r = write_syscall(thread);
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
