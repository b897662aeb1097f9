/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Target
 *
 * The recorded program's memory, and what of it tells about its start and its signals. It is in our
 * own address space, but need not be mapped where the program says. Programs of x86-64 and of i386
 * differ in the size of a word, and in the frames that signals leave on their stacks.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "util/vec.h"

#define TARGET_STACK_WORDS_MAX (1u << 20) /* of argv, envp and auxv together */
#define TARGET_HANDLERS_MAX    4096

struct target {
	const uintptr_t
	    *base;    /* borrowed: where its address 0 is; known when the program is loaded */
	uint8_t mode; /* of its code: 64, or 32 for i386 */
};

/* Return: size in bytes of an address of the target's. */
static inline size_t target_word(const struct target *target)
{
	return target->mode / 8;
}

/* Return: the target's number or address in @value, as QEMU hands it over: i386's with a sign. */
static inline uint64_t target_cut(const struct target *target, uint64_t value)
{
	return target->mode == 32 ? (uint32_t)value : value;
}

/* Copy @size bytes from the target's @address. Return: 0 or -EFAULT. */
_must_check_ int target_read(const struct target *target, uint64_t address, void *ret_bytes,
			     size_t size);

/* Read one word. Return: 0 or -EFAULT. */
_must_check_ int target_read_word(const struct target *target, uint64_t address,
				  uint64_t *ret_word);

/* Copy a string, cut off to fit. Return: 0 or -EFAULT. */
_must_check_ int target_read_string(const struct target *target, uint64_t address, char *ret_string,
				    size_t size);

/*
 * Return: whether a page of the private mapping of a file at [@address, @address + @size) may have
 * been written to: then it is a copy of the program's own.
 */
bool target_is_written(const struct target *target, uint64_t address, size_t size);

/* What the kernel tells a program that starts. 0: not told. */
struct target_start {
	uint64_t phdr;   /* AT_PHDR: an address in the program */
	uint64_t base;   /* AT_BASE: where its interpreter is */
	uint64_t execfn; /* AT_EXECFN: the name it was started by */
};

/* Read the stack of a program that has not run an instruction. Return: 0 or -EFAULT. */
_must_check_ int target_read_start(const struct target *target, uint64_t rsp,
				   struct target_start *ret_start);

/* The handlers a process ever registered; a late delivery may still go to one it replaced. */
struct target_handler {
	uint64_t address;
	uint64_t restorer; /* 0: QEMU's own, which i386's programs need not replace */
	bool info;         /* of i386: it gets a siginfo_t, and another frame */
};

struct target_handlers {
	VEC(struct target_handler) known;
};

/* How a system call is told of a handler. */
enum target_action {
	TARGET_RT_ACTION,  /* by rt_sigaction's struct */
	TARGET_OLD_ACTION, /* by that of i386's sigaction */
};

void target_handlers_deinit(struct target_handlers *handlers);

/*
 * Remember what the argument at @act registers.
 *
 * Return: address of the handler; 0 if it is none or no new one.
 */
uint64_t target_handlers_add(struct target_handlers *handlers, const struct target *target,
			     enum target_action kind, uint64_t act);

bool target_handlers_have(const struct target_handlers *handlers, uint64_t address);

/*
 * Is the thread that is about to run @ip with stack @rsp at the entry of a signal handler? If so,
 * @ret_ip is the instruction before which it was interrupted. When several signals arrive at once,
 * their frames are stacked and the first one's tells.
 */
bool target_at_handler(const struct target_handlers *handlers, const struct target *target,
		       uint64_t ip, uint64_t rsp, uint64_t *ret_ip);
