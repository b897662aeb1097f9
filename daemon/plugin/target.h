/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Target
 *
 * The memory of the recorded program (QEMU calls it the guest), from which the plugin reads how the
 * program was started and where its signal handlers are. The memory is in the plugin's own address
 * space, but may be at other addresses than the program uses. Programs for x86-64 and i386 have
 * different sizes of a word, and different signal frames on their stacks.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "util/vec.h"

#define TARGET_STACK_WORDS_MAX (1u << 20) /* of argv, envp and auxv together */
#define TARGET_HANDLERS_MAX    4096

struct target {
	/* Borrowed: where the program's address 0 is, once the program is loaded. */
	const uintptr_t *base;
	uint8_t mode; /* of its code: 64, or 32 for i386 */
};

/* Return: the size of an address of the program, in bytes. */
static inline size_t target_word(const struct target *target)
{
	return target->mode / 8;
}

/* Return: the program's number or address in @value, in which QEMU extends the sign of i386's. */
static inline uint64_t target_cut(const struct target *target, uint64_t value)
{
	return target->mode == 32 ? (uint32_t)value : value;
}

/* Copy @size bytes from the program's @address. Return: 0 or -EFAULT. */
_must_check_ int target_read(const struct target *target, uint64_t address, void *ret_bytes,
			     size_t size);

/* Read one word. Return: 0 or -EFAULT. */
_must_check_ int target_read_word(const struct target *target, uint64_t address,
				  uint64_t *ret_word);

/* Copy a string, and cut it to @size bytes. Return: 0 or -EFAULT. */
_must_check_ int target_read_string(const struct target *target, uint64_t address, char *ret_string,
				    size_t size);

/*
 * Return: whether a page of the private mapping of a file at [@address, @address + @size) may have
 *         been written to, and is then a copy that belongs to the program.
 */
bool target_is_written(const struct target *target, uint64_t address, size_t size);

/* What the kernel passes to a program that starts; 0: not passed. */
struct target_start {
	uint64_t phdr;   /* AT_PHDR: an address in the program */
	uint64_t base;   /* AT_BASE: the address of its interpreter */
	uint64_t execfn; /* AT_EXECFN: the path by which it was executed */
};

/* Read that from the stack of a program that has not run an instruction. Return: 0 or -EFAULT. */
_must_check_ int target_read_start(const struct target *target, uint64_t rsp,
				   struct target_start *ret_start);

/* All signal handlers that a process ever registered. A signal may still be delivered to a handler
 * that was replaced meanwhile. */
struct target_handler {
	uint64_t address;
	uint64_t restorer; /* 0: QEMU's own, which programs for i386 need not replace */
	bool info;         /* i386 only: the handler gets a siginfo_t, and another frame */
};

struct target_handlers {
	VEC(struct target_handler) known;
};

/* The structure by which a system call registers a handler. */
enum target_action {
	TARGET_RT_ACTION,  /* that of rt_sigaction */
	TARGET_OLD_ACTION, /* that of i386's sigaction */
};

/*
 * Remember the handler that the structure at @act registers.
 *
 * Return: the address of the handler; 0 if there is none, or it is known already.
 */
uint64_t target_handlers_add(struct target_handlers *handlers, const struct target *target,
			     enum target_action kind, uint64_t act);

/* Return: whether a handler is at @address. */
bool target_handlers_have(const struct target_handlers *handlers, uint64_t address);

/*
 * Find out whether a thread that is about to run @ip with stack @rsp is at the entry of a signal
 * handler. @ret_ip is then the instruction before which the thread was interrupted. If several
 * signals arrive at once, their frames are stacked, and the frame of the first one has the address.
 *
 * Return: whether it is.
 */
bool target_at_handler(const struct target_handlers *handlers, const struct target *target,
		       uint64_t ip, uint64_t rsp, uint64_t *ret_ip);

/* Return: the number of the signal in an i386 handler's frame at @esp; 0 if it cannot be read. */
uint32_t target_handler_signal(const struct target *target, uint64_t esp);

/* How the registers of a thread are to change, after its frame was moved. */
struct target_move {
	int bytes;      /* 0: it was not moved */
	bool arguments; /* those that point to siginfo_t and ucontext_t have to follow, too */
};

/*
 * QEMU 7.2 enters a signal handler with a stack that is not aligned as the ABI says, and code that
 * compilers make may then fault. If that is so of the frame at @rsp, where a handler is about to
 * begin, move the frame, except the state of the FPU, which is the last thing in it.
 *
 * Nothing has to be undone: the return from the handler, and an unwinder, look for the frame where
 * the stack pointer is, and for the state of the FPU where the frame says.
 */
struct target_move target_align_frame(const struct target *target, uint64_t rsp);
