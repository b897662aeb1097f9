/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Guest
 *
 * The recorded program's memory, and what of it tells about its start and its signals. It is in our
 * own address space, but need not be mapped where the program says.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/util/vec.h"

#define GUEST_STACK_WORDS_MAX (1u << 20) /* of argv, envp and auxv together */
#define GUEST_HANDLERS_MAX    4096

/* Copy @size bytes from the guest's @address. Return: 0 or -EFAULT. */
_must_check_ int guest_read(uintptr_t guest_base, uint64_t address, void *ret_bytes, size_t size);

/* Copy a string, cut off to fit. Return: 0 or -EFAULT. */
_must_check_ int guest_read_string(uintptr_t guest_base, uint64_t address, char *ret_string,
				   size_t size);

/* What the kernel tells a program that starts. 0: not told. */
struct guest_start {
	uint64_t phdr;   /* AT_PHDR: an address in the program */
	uint64_t base;   /* AT_BASE: where its interpreter is */
	uint64_t execfn; /* AT_EXECFN: the name it was started by */
};

/* Read the stack of a program that has not run an instruction. Return: 0 or -EFAULT. */
_must_check_ int guest_read_start(uintptr_t guest_base, uint64_t rsp,
				  struct guest_start *ret_start);

/* The handlers a process ever registered; a late delivery may still go to one it replaced. */
struct guest_handler {
	uint64_t address;
	uint64_t restorer;
};

struct guest_handlers {
	VEC(struct guest_handler) known;
};

void guest_handlers_deinit(struct guest_handlers *handlers);

/*
 * Remember what rt_sigaction's argument at @act registers.
 *
 * Return: address of the handler; 0 if it is none or no new one.
 */
uint64_t guest_handlers_add(struct guest_handlers *handlers, uintptr_t guest_base, uint64_t act);

bool guest_handlers_have(const struct guest_handlers *handlers, uint64_t address);

/*
 * Is the thread that is about to run @ip with stack @rsp at the entry of a signal handler? If so,
 * @ret_ip is the instruction before which it was interrupted. When several signals arrive at once,
 * their frames are stacked and the first one's tells.
 */
bool guest_at_handler(const struct guest_handlers *handlers, uintptr_t guest_base, uint64_t ip,
		      uint64_t rsp, uint64_t *ret_ip);
